#!/bin/sh
# Runs a real service manager (systemd --user) in its own cgroups and namespaces:
#   e2e/manager.sh NAME UNIT_DIR TARGET
# A manager that starts at the root of a cgroup hierarchy collects every process it finds there. So
# the first act is to enter a fresh sub-cgroup, and nothing is started if that does not work.
set -eu
name=$1 units=$2 target=$3
cgroups=$(mktemp)
own() {
    awk -F: -v want="$1" '(want == "unified" && $1 == 0) || $2 == "name=" want { print $3; exit }' /proc/self/cgroup
}
leave() {
    # Processes that were killed a moment ago may still hold their place.
    for try in 1 2 3 4 5 6 7 8 9 10; do
        while read -r dir; do find "$dir" -depth -type d -exec rmdir {} \; 2>/dev/null || :; done <"$cgroups"
        while read -r dir; do [ ! -d "$dir" ] || { sleep 0.1; continue 2; }; done <"$cgroups"
        break
    done
    rm -f "$cgroups"
}
child=
stop() {
    # unshare takes its namespace's processes with it.
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || :
    exit 143
}
trap leave EXIT
trap stop INT TERM
for hierarchy in systemd unified; do
    dir=/sys/fs/cgroup/$hierarchy$(own $hierarchy)/tenon-$name
    mkdir "$dir"
    echo "$dir" >>"$cgroups"
done
# The shell that stays outside keeps its place, so that it can clean up.
(
    while read -r dir; do sh -c 'echo $PPID' >"$dir/cgroup.procs"; done <"$cgroups"
    export XDG_RUNTIME_DIR=/run/user/0 SYSTEMD_UNIT_PATH="$units:" SYSTEMD_LOG_TARGET=console
    exec unshare --mount --cgroup --pid --fork --kill-child --propagation private sh -euc '
        mount -t proc proc /proc
        umount -R -l /sys/fs/cgroup
        mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
        mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
        mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
        mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
        mount -t tmpfs tmpfs /run
        mkdir -p /run/systemd/system /run/user/0
        # Not exec: as process 1 of its namespace the manager would take itself for the system one.
        /lib/systemd/systemd --user --unit="$1"
        :' sh "$target"
) &
child=$!
wait "$child"
