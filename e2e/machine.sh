#!/bin/sh
# Boots a machine: systemd as process 1, in its own cgroups and namespaces.
#   e2e/machine.sh NAME PLACE ROOT NETWORK [OPTIONS OF NSPAWN]
# PLACE holds the machine's disk (upper, containerd), which outlives a reboot; NETWORK is the file
# of a network namespace. PLACE/nspawn holds the process id as long as the machine runs.
#
# A systemd that starts at the root of a cgroup hierarchy collects every process it finds there. So
# the first act is to enter a fresh sub-cgroup below our own in each hierarchy, and nothing is
# started if that does not work.
set -eu
name=$1 place=$2 root=$3 network=$4
shift 4
mkdir -p "$place/upper" "$place/work" "$place/root" "$place/containerd"
cgroups=$place/cgroups hierarchies=$place/hierarchies
: >"$cgroups"
: >"$hierarchies"

# One line for each hierarchy of the host: its directory's name and its mount options.
while IFS=: read -r _ controllers path; do
    case $controllers in
    "") directory=unified options= ;;
    name=*) directory=${controllers#name=} options=none,$controllers ;;
    *) directory=$controllers options=$controllers ;;
    esac
    parent=/sys/fs/cgroup/$directory${path%/}
    [ -d "$parent" ] || { echo "no cgroup directory $parent" >&2; exit 1; }
    echo "$directory $options" >>"$hierarchies"
    echo "$parent/tenon-$name" >>"$cgroups"
done </proc/self/cgroup

leave() {
    # Processes that were killed a moment ago may still hold their place.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        left=0
        while read -r dir; do
            find "$dir" -depth -type d -exec rmdir {} \; 2>/dev/null || :
            [ ! -d "$dir" ] || left=1
        done <"$cgroups"
        [ $left = 1 ] || break
        sleep 0.2
    done
    rm -f "$place/nspawn"
}
child=
stop() {
    # Process 1 takes its whole machine with it, and nspawn follows.
    if [ -n "$child" ]; then
        for pid in $(cat "/proc/$child/task/$child/children") $child; do
            kill -KILL "$pid" 2>/dev/null || :
        done
        wait "$child" || :
    fi
    exit 143
}
trap leave EXIT
trap stop INT TERM

while read -r dir; do
    mkdir "$dir"
    if [ -e "$dir/cpuset.cpus" ]; then
        for file in cpus mems; do cat "${dir%/*}/cpuset.$file" >"$dir/cpuset.$file"; done
    fi
done <"$cgroups"

# The shell that stays outside keeps its place, so that it can clean up.
(
    while read -r dir; do sh -c 'echo $PPID' >"$dir/cgroup.procs"; done <"$cgroups"
    # Of the kernel's settings only those of the machine's own network may be written. Without the
    # filter of system calls, runc can join its session keyring.
    export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network SYSTEMD_SECCOMP=0
    # What /tmp is, the machine's own units say.
    export SYSTEMD_NSPAWN_TMPFS_TMP=0
    export LAB_NAME="$name" LAB_PLACE="$place" LAB_ROOT="$root" LAB_NETWORK="$network"
    exec unshare --mount --cgroup --propagation private sh -euc '
        umount -R -l /sys/fs/cgroup
        mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
        while read -r directory options; do
            mkdir "/sys/fs/cgroup/$directory"
            if [ -n "$options" ]; then
                mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$directory"
            else
                mount -t cgroup2 cgroup2 "/sys/fs/cgroup/$directory"
            fi
        done <"$LAB_PLACE/hierarchies"
        mount -t tmpfs tmpfs /run
        mount -t overlay overlay "$LAB_PLACE/root" \
            -o "lowerdir=$LAB_ROOT,upperdir=$LAB_PLACE/upper,workdir=$LAB_PLACE/work"
        echo $$ >"$LAB_PLACE/nspawn"
        exec systemd-nspawn --quiet --register=no --keep-unit --boot --directory="$LAB_PLACE/root" \
            --machine="$LAB_NAME" --capability=all --bind=/dev/kmsg --resolv-conf=off \
            --bind="$LAB_PLACE/containerd:/var/lib/containerd" --kill-signal=SIGRTMIN+4 \
            --network-namespace-path="$LAB_NETWORK" "$@"' sh "$@"
) </dev/null &
child=$!
wait "$child"
