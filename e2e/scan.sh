#!/bin/sh
# Lets OpenSCAP judge a root file system by Debian's CIS profile for servers, level 1 or another.
#   e2e/scan.sh ROOT SCANNER RESULTS [LEVEL]
# SCANNER is a directory with the scanner's programs and content, laid over ROOT for the time of the
# scan. The namespaces get what a boot would give them: settings of the network, the file systems of
# fstab and the firewall. Everything else of the kernel is read-only, because it is the host's.
set -eu
export ROOT="$1" SCANNER="$2" RESULTS="$3" LEVEL="${4:-1}"
exec unshare --mount --pid --net --ipc --uts --fork --kill-child --propagation private sh -euc '
    ip link set lo up
    hostname localhost
    mount -t tmpfs tmpfs /mnt
    mkdir /mnt/upper /mnt/work /mnt/root
    mount -t overlay overlay /mnt/root \
        -o "lowerdir=$SCANNER:$ROOT,upperdir=/mnt/upper,workdir=/mnt/work"
    cd /mnt/root
    mount -t proc proc proc
    mount --bind proc/sys proc/sys
    mount --bind proc/sys/net proc/sys/net
    mount -o remount,bind,ro proc/sys
    mount -t sysfs -o ro sysfs sys
    mount -t tmpfs -o size=64m tmpfs run
    mkdir -p dev/shm
    inside() { chroot . env -i PATH=/usr/sbin:/usr/bin "$@"; }
    # Settings that only the host may change are refused here, as meant.
    inside /lib/systemd/systemd-sysctl 2>/dev/null || :
    inside mount -a
    if [ -L etc/systemd/system/sysinit.target.wants/nftables.service ]; then
        inside nft -f /etc/nftables.conf
    fi
    # 0: all rules pass; 2: some do not.
    inside oscap xccdf eval --results /run/results.xml \
        --profile "xccdf_org.ssgproject.content_profile_cis_level${LEVEL}_server" \
        /usr/share/xml/scap/ssg/content/ssg-debian12-ds.xml >/mnt/said 2>&1 || [ $? = 2 ] || {
        cat /mnt/said >&2
        exit 1
    }
    cp run/results.xml "$RESULTS"'
