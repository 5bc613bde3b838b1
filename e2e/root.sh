#!/bin/sh
# Builds the root file system of the lab's machines: Debian with systemd, cloud-init and containerd.
#   e2e/root.sh DESTINATION PACKAGE,PACKAGE,...
# The archive is built on a tmpfs that goes with its mount namespace, and is bit-identical as long
# as Debian's packages are; its digest is kept beside the files.
set -eu
destination=$1 packages=$2
mkdir -p "$destination"
export destination packages SOURCE_DATE_EPOCH=1760000000
exec unshare --mount --propagation private sh -euc '
    work=$(mktemp -d)
    trap "umount $work; rmdir $work" EXIT
    mount -t tmpfs -o size=6g tmpfs "$work"
    # What the image starts by itself on a machine is either of no use here (timers, logins)
    # or must wait for Tenon (containerd).
    TMPDIR=$work mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --include="$packages" \
        --customize-hook="systemctl --root=\"\$1\" --quiet disable containerd.service getty@.service e2scrub_reap.service" \
        --customize-hook="systemctl --root=\"\$1\" --quiet mask console-getty.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer" \
        --customize-hook=": >\"\$1/etc/resolv.conf\"" \
        bookworm "$work/root.tar"
    mkdir "$destination/root"
    tar -xf "$work/root.tar" -C "$destination/root" --numeric-owner
    sha256sum <"$work/root.tar" >"$destination/sha256"'
