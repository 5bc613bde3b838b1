#!/bin/sh
# Makes a machine out of an Ignition config, for `cargo xtask e2e stages`:
#   set-up.sh PLACE TENON CONFIG IGNITION
# Ignition writes the tree, systemctl enables what the config enables. Then the paths of the units
# get the machine's prefix, since systemd runs on this host; nothing else in them is changed but
# the pace of repeats. Programs that a machine would have are stand-ins that note what they see.
set -eu
place=$1 tenon=$2 config=$3 ignition=$4
root=$place/root units=$place/root/etc/systemd/system
mkdir -p "$place/bin" "$root/etc" "$place/home"
ln -sf "$ignition" "$place/bin/ignition-apply"
"$tenon" -q ignition render -c "$config" --catalogue "$place/catalogue.yaml" >"$place/config.ign"
"$place/bin/ignition-apply" --root "$root" --offline "$place/config.ign" >"$place/ignition.log" 2>&1
systemctl --root="$root" preset-all 2>"$place/preset.log"
find "$units" -type f | while read -r unit; do
    sed -i -e "s#/var/lib/tenon#$root/var/lib/tenon#g" -e "s#/etc/kubernetes#$root/etc/kubernetes#g" \
        -e "s#/usr/local/bin/tenon#$place/tenon#g" -e "s#^RestartSec=.*#RestartSec=300ms#" \
        -e "s#^StateDirectory.*##" "$unit"
done
# Sandboxing is for system units; the user manager of this test cannot set it up.
find "$units" -name 10-hardening.conf -delete
mkdir -p "$root/usr/bin" "$root/proc/sys/kernel/random" "$root/sys/fs/cgroup" "$root/run/systemd/system"
touch "$root/sys/fs/cgroup/cgroup.controllers"
echo cp-1 >"$root/proc/sys/kernel/hostname"
echo 4f1e2d3c4b5a69788796a5b4c3d2e1f0 >"$root/etc/machine-id"
printf 'ID=flatcar\nVERSION_ID=4593.1.0\n' >"$root/etc/os-release"
ln -sfn /run/user/0/systemd/private "$root/run/systemd/private"
program() {
    cat >"$1"
    chmod 755 "$1"
}
program "$place/tenon" <<EOF
#!/bin/sh
case "\$*" in
"stage bootstrap" | "stage addons") exec "$place/stand-in" "\$2" ;;
esac
[ ! -e "$place/environment" ] || . "$place/environment"
echo "\$(cat "$root/proc/sys/kernel/random/boot_id") tenon \$*" >>"$place/events"
[ -e "$place/power-cut" ] || exec "$tenon" --root "$root" "\$@"
# A power cut takes the whole machine: the manager is our parent.
code=0
"$tenon" --root "$root" "\$@" || code=\$?
[ ! -e "$place/fired" ] || [ ! -e "$place/power-cut" ] || { rm "$place/power-cut"; kill -KILL \$PPID; }
exit \$code
EOF
# The control plane's stages have tests of their own on real programs; here only their units count.
program "$place/stand-in" <<EOF
#!/bin/sh
note() { echo "\$(cat "$root/proc/sys/kernel/random/boot_id") \$*" >>"$place/events"; }
stage=\$1 home=$root/var/lib/tenon
note "\$stage run"
[ -e "\$home/done/prepare" ] || { note "\$stage waits"; exit 9; }
if [ -e "$place/\$stage.fails-once" ]; then rm "$place/\$stage.fails-once"; note "\$stage fails"; exit 8; fi
if [ -e "$place/\$stage.fails" ]; then rm -f "\$home/trigger/\$stage" "\$home/trigger/addons"; note "\$stage blocked"; exit 12; fi
[ "\$stage" = bootstrap ] || [ -e "\$home/done/bootstrap" ] || { note "\$stage too early"; exit 12; }
python3 - "\$home/state.json" "\$stage" <<'PY'
import json, os, sys
path, stage = sys.argv[1:]
state = json.load(open(path))
state["stages"][stage] = {"status": "done"}
json.dump(state, open(path + ".new", "w"))
os.replace(path + ".new", path)
PY
: >"\$home/done/\$stage"
rm -f "\$home/trigger/\$stage"
note "\$stage done"
EOF
program "$place/kubelet" <<EOF
#!/bin/sh
gate=closed; [ ! -e "$root/etc/kubernetes/kubelet.env" ] || gate=open
prepared=no; [ ! -e "$root/var/lib/tenon/done/prepare" ] || prepared=yes
echo "\$(cat "$root/proc/sys/kernel/random/boot_id") kubelet start gate=\$gate prepared=\$prepared" >>"$place/events"
EOF
program "$place/containerd" <<EOF
#!/bin/sh
state=empty; [ ! -e "$root/var/lib/containerd/meta.db" ] || state=old
echo "\$(cat "$root/proc/sys/kernel/random/boot_id") containerd start \$("$root/usr/bin/containerd" --version | cut -d' ' -f3) state=\$state" >>"$place/events"
EOF
program "$root/usr/bin/kubelet" <<EOF
#!/bin/sh
echo Kubernetes v1.34.2
EOF
program "$place/probe" <<EOF
#!/bin/sh
# Ends the boot when the goals of this boot are there, or after its time.
boot=\$(cat "$root/proc/sys/kernel/random/boot_id")
try=0
while [ \$try -lt \$(cat "$place/patience") ]; do
    [ ! -x "$place/during" ] || "$place/during" "\$boot" || :
    missing=no
    for goal in \$(cat "$place/goals"); do [ -e "\$goal" ] || missing=yes; done
    [ \$missing = yes ] || break
    try=\$((try + 1))
    sleep 0.1
done
[ \$missing = no ] || echo "\$boot goals missed" >>"$place/events"
# A kubelet that waits for its next try starts within its pace.
sleep 0.7
systemctl --user list-units --all --plain --no-legend >"$place/units-\$boot"
systemctl --user show tenon-assets.service k8s-node-bootstrap.service tenon-bootstrap.service tenon-addons.service kubelet.service -p Id -p NRestarts -p Result -p ExecMainStatus -p StatusText >"$place/show-\$boot"
echo "\$boot end" >>"$place/events"
systemctl --user exit
EOF
mkdir -p "$units/kubelet.service.d" "$units/multi-user.target.wants"
# They note their start before they count as started, so that the order of notes is that of units.
printf '[Service]\nExecStartPre=%s\nExecStart=\nExecStart=/bin/sleep 600\n' "$place/kubelet" >"$units/kubelet.service.d/99-stand-in.conf"
printf '[Service]\nStandardError=append:%s\n' "$place/prepare.log" >"$units/k8s-node-bootstrap.service.d/99-log.conf"
printf '[Service]\nExecStartPre=%s\nExecStart=/bin/sleep 600\n' "$place/containerd" >"$units/containerd.service"
ln -sf ../containerd.service "$units/multi-user.target.wants/containerd.service"
printf '[Unit]\nDescription=Multi-User\nWants=probe.service\n' >"$units/multi-user.target"
printf '[Service]\nType=exec\nExecStart=%s\n' "$place/probe" >"$units/probe.service"
printf '[Unit]\nDescription=Reboot\nRequires=power-cycle.service\n' >"$units/reboot.target"
program "$place/power-cycle" <<EOF
#!/bin/sh
echo "\$(cat "$root/proc/sys/kernel/random/boot_id") reboot" >>"$place/events"
# The job that asked cannot be replaced, so it must be over first.
until systemctl --user exit; do sleep 0.1; done
EOF
printf '[Service]\nExecStart=%s\n' "$place/power-cycle" >"$units/power-cycle.service"
: >"$place/events"
