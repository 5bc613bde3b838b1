//! Pages about the machine being changed: `TN06…` host, `TN07…` files, `TN08…` daemons,
//! `TN09…` waiting, `TN11…` lock, `TN12…` recorded state.

super::pages! {
    FILE_READ = "TN07001" "file-read",
        why: "the file could not be read",
        fix: "check that the file exists, is readable, and lies on a healthy file system";
    FILE_WRITE = "TN07002" "file-write",
        why: "the write did not succeed; every file still has its old content",
        fix: "mend the file system named above and run again";
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
