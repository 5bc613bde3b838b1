//! Pages about the machine being changed: `TN01…` findings, `TN06…` host, `TN07…` files,
//! `TN08…` daemons, `TN09…` waiting, `TN11…` lock, `TN12…` recorded state.

super::pages! {
    FILE_READ = "TN07001" "file-read",
        why: "the file could not be read",
        fix: "check that the file exists, is readable, and lies on a healthy file system";
    FILE_WRITE = "TN07002" "file-write",
        why: "the write did not succeed; every file still has its old content",
        fix: "mend the file system named above and run again";
    EDITED_FILE = "TN01201" "edited-file",
        why: "a file that Tenon wrote was changed by someone else since",
        fix: "move the change into the config, or choose what happens with it: keep, overwrite or backup";
    NOT_REMOVED = "TN01202" "not-removed",
        why: "the path should be gone, but what stands there was not written by Tenon",
        fix: "look at it and remove it by hand if nothing needs it";
    UNSAFE_TARGET = "TN06002" "unsafe-target",
        why: "Tenon writes plain files only: writing through a link, into a device or over a directory could change something else",
        fix: "see what it is with `ls -ld`, move it away and run again";
    UNSAFE_DIRECTORY = "TN06003" "unsafe-directory",
        why: "whoever can write to the directory could swap the node's files, so nothing is written there",
        fix: "give the directory to root and take the write bit from others: `chown root:root DIR; chmod o-w DIR`";
    FOREIGN_FILE = "TN06004" "foreign-file",
        why: "a file of the same name is there and Tenon did not write it; it is not overwritten",
        fix: "move the file away, or take the entry out of the config";
    TARGET_TOO_LARGE = "TN06005" "target-too-large",
        why: "the file to be replaced is far larger than any file of a node, so it is probably something else",
        fix: "look at the file, move it away and run again";
    NO_MANAGER = "TN06006" "no-service-manager",
        why: "units must be started and no systemd answers, neither on the system bus nor on its private socket",
        fix: "run on a machine with systemd, or write the files only: `--skip run`";
    PROGRAM_MISSING = "TN06007" "program-missing",
        why: "a step needs a program that the machine does not have",
        fix: "install the program into the image, or take the setting that needs it out of the config";
    NO_SPACE = "TN07003" "no-space",
        why: "the file system has too little room for the new files; nothing was changed",
        fix: "free the bytes named above and run again";
    NO_INODES = "TN07004" "no-inodes",
        why: "the file system has no inodes left for the new files; nothing was changed",
        fix: "remove files that are not needed and run again";
    READ_ONLY = "TN07005" "read-only",
        why: "the file system is mounted read-only; nothing was changed",
        fix: "mount it read-write, or work on another directory with --root";
    SYNC_FAILED = "TN07006" "sync-failed",
        why: "the disk did not confirm the write. A sync that did not succeed is not repeated: the kernel may have dropped the data already",
        fix: "check the disk (`dmesg`), replace it if needed, and run again";
    RENAME_STOPPED = "TN07007" "rename-stopped",
        why: "some files have their new content and some their old; no unit was started on the mixture",
        fix: "mend the file system named above and run again: it continues where this run stopped";
    COPY_STOPPED = "TN07008" "copy-stopped",
        why: "a directory could not be copied whole; the original is untouched and still in use",
        fix: "mend the cause named above and run again: the copy starts afresh";
    UNIT_FAILED = "TN08001" "unit-failed",
        why: "the unit did not come up; its own last words are below",
        fix: "read the lines below, mend the cause and run again";
    UNIT_MASKED = "TN08002" "unit-masked",
        why: "a masked unit cannot be started by anyone",
        fix: "unmask it: `systemctl unmask UNIT`";
    UNIT_ABSENT = "TN08003" "unit-absent",
        why: "the machine has no such unit: the package that brings it is not installed",
        fix: "install the package into the image, or leave the daemon out with --daemon";
    UNIT_RESTARTS = "TN08004" "unit-crash-loop",
        why: "the unit starts and dies again; waiting longer does not help",
        fix: "read the lines below: most often a flag or a setting that this version does not know";
    UNIT_REQUIRED = "TN08005" "unit-required",
        why: "a unit that must be up before is not active, so this one was not started",
        fix: "see `systemctl status` of the unit named above";
    UNIT_TIMEOUT = "TN09002" "unit-timeout",
        why: "the unit's job did not end within its time",
        fix: "read the lines below; a slow disk may need a larger --unit-timeout";
    NOT_HEALTHY_YET = "TN09003" "not-healthy-yet",
        why: "the kubelet runs without a crash but its health port has not answered yet",
        fix: "look again with `tenon status`; the kubelet's journal says what it waits for";
    BUSY = "TN11001" "busy",
        why: "two runs at once would undo each other",
        fix: "wait for the other run to end, or give --wait-lock TIME";
    STATE_TOO_NEW = "TN12001" "state-too-new",
        why: "a newer Tenon made this node, and this one cannot know what its state means",
        fix: "use the newer binary";
    STATE_DAMAGED = "TN12002" "state-damaged",
        why: "Tenon writes this file whole and last, so something else has changed it",
        fix: "move the file away and run again: everything is checked anew";
    NOTHING_TO_UNDO = "TN12003" "nothing-to-undo",
        why: "no earlier generation is kept on this machine",
        fix: "change the config and run `tenon init` instead";
    STATE_OTHER_MACHINE = "TN12004" "state-other-machine",
        why: "the recorded state was made on another instance and came here with the image",
        fix: "run `tenon init` first";
    BOOT_UNDER_WAY = "TN06013" "boot-under-way",
        why: "the run phase was called from user data: scripts that come later change files too late for this start",
        fix: "let the image's units call it after cloud-final.service, or ignore this if no later script touches the node's files";
    NOT_RUN_IN_TREE = "TN06012" "not-run-in-tree",
        why: "under --root the files belong to another machine; a program or hook would work on this one",
        fix: "nothing to do: it runs when `tenon init` runs on the machine itself";
    NO_LOOPBACK = "TN06011" "no-loopback",
        why: "a rehearsal needs one port on 127.0.0.1 for its own metadata service",
        fix: "run it where programs may listen on loopback";
    STATE_TIMEOUT = "TN09010" "state-timeout",
        why: "the node did not come as far as was waited for",
        fix: "`tenon status` says what is expected next";
    NOT_ROOT = "TN06010" "not-root",
        why: "units, owners and directories of the system can only be changed by root",
        fix: "run the command as root";
    PROGRAM_FAILED = "TN06001" "program-failed",
        why: "a program of the machine did not do its part",
        fix: "run the command by hand to see more; its last words are below";
    PROGRAM_TIMEOUT = "TN09001" "program-timeout",
        why: "a program of the machine did not end within its time and was killed",
        fix: "run the command by hand to see where it hangs";
    INTERRUPTED = "TN30001" "interrupted",
        why: "SIGINT asked for a stop; temporary files were removed and nothing is half-written",
        fix: "run again: it continues where this run stopped";
    TERMINATED = "TN43001" "terminated",
        why: "SIGTERM asked for a stop; temporary files were removed and nothing is half-written",
        fix: "run again: it continues where this run stopped";
}
