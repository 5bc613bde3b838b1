#!/bin/sh
# What a booted image says of itself, on the second serial line of its virtual machine. It waits for
# the first pod, so that everything is there which may have changed what the image's plan says.
exec >/dev/ttyS1 2>/dev/null
section() {
    name="$1"
    shift
    echo "== $name"
    "$@"
    echo "-- $?"
}
# A bootstrap that failed starts no pod.
failed() {
    systemctl is-failed --quiet tenon-config.service tenon-run.service
}
waited=0
until failed || ctr --namespace k8s.io tasks list 2>/dev/null | grep -c RUNNING | grep -qx '[2-9]'; do
    waited=$((waited + 1))
    [ "$waited" -lt 600 ] || break
    sleep 1
done
section kernel uname --kernel-release
section hierarchy stat --file-system --format %T /sys/fs/cgroup
section failed systemctl --failed --plain --no-legend --no-pager
section apparmor cat /sys/module/apparmor/parameters/enabled
section swap cat /proc/swaps
section slice systemctl show --value --property ControlGroup kubelet.service
section verify tenon image verify --running --output json
section validate tenon validate --output json
section doctor tenon doctor --output json
section tenon journalctl --no-pager --output short-monotonic --unit "tenon-*" --unit containerd.service --lines 80
section kubelet journalctl --no-pager --output cat --unit kubelet.service --lines 40
echo "END OF REPORT"
