# The words with which the lab breaks a node, and mends it. Read by `sh`, never run alone.
set -eu
SAVED="/etc/kubernetes /etc/eks /etc/containerd /etc/cni /etc/systemd/system /etc/lab-token
    /etc/resolv.conf /var/lib/kubelet/kubeconfig"

# Keeps what may be broken.
save() { tar -C / -cf /root/saved.tar $(printf '%s ' $SAVED | sed 's| /| |g; s|^/||'); }

# Puts everything back as it was, and starts with an empty journal.
mend() {
    systemctl stop kubelet lab-port 2>/dev/null || :
    if [ -e /run/lab-over ]; then
        tac /run/lab-over | while read -r place; do umount -l "$place"; done
        rm /run/lab-over
    fi
    nft delete table inet lab 2>/dev/null || :
    ip route del unreachable 10.0.0.1 2>/dev/null || :
    for place in /etc/kubernetes /etc/containerd /etc/cni /etc/systemd/system; do
        find "$place" -mindepth 1 -delete
    done
    rm -f /etc/eks/kubelet-version.txt
    tar -C / -xf /root/saved.tar
    systemctl daemon-reload
    ctr -n k8s.io images import /etc/eks/pause.tar >/dev/null 2>&1 || :
    systemctl reset-failed
    journalctl --quiet --rotate --vacuum-time=1us
    systemctl restart containerd
    systemctl start tenon-config tenon-run
    systemctl restart kubelet
}

again() { systemctl reset-failed kubelet 2>/dev/null || :; systemctl restart --no-block kubelet; }
restart() { systemctl reset-failed "$1" 2>/dev/null || :; systemctl restart "$1" || :; }
server() { sed -i "s|server: .*|server: \"$1\"|" /var/lib/kubelet/kubeconfig; }
# Nothing goes through the proxy.
direct() { : >/etc/eks/proxy.env; }
arguments() {
    sed -i "s|^NODEADM_KUBELET_ARGS=\(\"\{0,1\}\)\(.*[^\"]\)|NODEADM_KUBELET_ARGS=\1\2 $1|" \
        /etc/eks/kubelet/environment
}
# Changes the kubelet's config and takes away the drop-ins that would win over it.
config() {
    jq "$1" /etc/kubernetes/kubelet/config.json >/run/lab-config
    cat /run/lab-config >/etc/kubernetes/kubelet/config.json
    for part in /etc/kubernetes/kubelet/config.json.d/*; do
        jq "if has(\"failCgroupV1\") then del(.failCgroupV1) else . end" "$part" >/run/lab-part
        jq -s '.[0] * .[1]' /run/lab-part /run/lab-config >/run/lab-both
        jq "$1" /run/lab-both >/etc/kubernetes/kubelet/config.json
        rm "$part"
    done
}
over() { mount --bind "$1" "$2"; echo "$2" >>/run/lab-over; }
# As if Tenon had never run.
forget() {
    systemctl stop kubelet tenon-run tenon-config 2>/dev/null || :
    systemctl reset-failed kubelet tenon-run tenon-config 2>/dev/null || :
    rm -rf /etc/eks/kubelet /etc/kubernetes/kubelet /etc/kubernetes/pki /var/lib/kubelet/kubeconfig
    rm -rf /var/lib/tenon /run/eks /run/nodeadm
    journalctl --quiet --sync --rotate
    journalctl --quiet --vacuum-time=1us
}
# Lays a file system without room over a directory.
full() {
    mkdir -p /run/lab-keep
    cp -a "$1/kubeconfig" /run/lab-keep/
    mount -t tmpfs -o size=64k lab "$1"
    echo "$1" >>/run/lab-over
    cp -a /run/lab-keep/kubeconfig "$1/"
    dd if=/dev/zero of="$1/full" bs=4k 2>/dev/null || :
}
# The same program with another machine's number in its head.
foreign() {
    head -c 65536 "$1" >/run/lab-foreign
    printf '\267\000' | dd of=/run/lab-foreign bs=1 seek=18 conv=notrunc 2>/dev/null
    chmod 0755 /run/lab-foreign
    over /run/lab-foreign "$1"
}
occupy() {
    systemctl stop kubelet
    systemd-run --quiet --unit lab-port python3 -c "
import socket, time
listener = socket.create_server(('', $1))
time.sleep(600)"
    while ! ss -ltn | grep -q ":$1 "; do sleep 0.1; done
}
