//! Pages about starting a control plane and filling a new cluster: serials 650 to 699.

super::pages! {
    UNSUPPORTED_VERSION = "TN03651" "unsupported-control-plane-version",
        why: "flags, images and probes differ by minor version; Tenon knows those of Kubernetes 1.33 to 1.36",
        fix: "set `spec.controlPlane.kubernetesVersion` (or --kubernetes-version) to a version of these minors, such as v1.34.10";
    BAD_PATCH_NAME = "TN03652" "bad-patch-name",
        why: "the name of a patch file says what it changes and how: COMPONENT, then letters or digits for the order, then +strategic, +merge or +json, then .yaml or .json",
        fix: "rename the file, for example to `kube-apiserver0+merge.yaml`; components are etcd, kube-apiserver, kube-controller-manager and kube-scheduler";
    BAD_PATCH = "TN03653" "patch-does-not-apply",
        why: "a patch that is applied in part would give a control plane that nobody asked for",
        fix: "compare the patch with what `tenon control-plane render` prints without it; a JSON patch names paths that exist";
    BAD_MANIFEST = "TN03654" "bad-manifest",
        why: "an object of the API has apiVersion, kind and metadata.name; every file is read before the first object is applied",
        fix: "correct the document; `kubectl create --dry-run=client -f FILE` shows how the API reads it";
    ADDON_CONFLICT = "TN03655" "field-owned-by-another",
        why: "another manager set a field of this object, and applying would undo its work",
        fix: "remove the field from the add-on, or take it over with `--force` (spec.addons.force: true)";
    OBJECT_REFUSED = "TN03656" "object-refused",
        why: "the API server understood the object and does not accept it; repeating does not help",
        fix: "correct the object as the API server says, then run the stage again";
    NOT_FIRST_MASTER = "TN03657" "not-the-first-master",
        why: "one machine of a cluster starts its control plane, the one whose config says `role: first-master`",
        fix: "run this on that machine, or set `spec.role: first-master` here if the cluster does not exist yet";
    NO_ADDRESS = "TN03659" "no-advertise-address",
        why: "certificates and static pods name the address at which this machine's API server is reached",
        fix: "set `spec.controlPlane.advertiseAddress` or `spec.node.ip`";
    PORT_OCCUPIED = "TN06650" "port-occupied",
        why: "a component of the control plane listens on this port, and another program of this machine already does",
        fix: "stop that program (`ss -ltnp` names it) or move it to another port, then run `tenon stage reset bootstrap`";
    FOREIGN_MANIFEST = "TN06651" "foreign-static-pod",
        why: "a static pod of that name lies in the kubelet's directory and was not written by Tenon; it is not overwritten",
        fix: "move the file away if nobody needs it, then run `tenon stage reset bootstrap`";
    KUBELET_NOT_HEALTHY = "TN09650" "kubelet-not-healthy",
        why: "static pods are started by the kubelet, and it does not answer on 127.0.0.1:10248",
        fix: "look at `systemctl status kubelet` and `journalctl -u kubelet`; the stage tries again by itself";
    STEP_DEADLINE = "TN09652" "control-plane-not-up",
        why: "a part of the control plane did not reach the wanted state within its deadline",
        fix: "read the last lines of its container below, correct the config, and run the stage again; it goes on where it stopped";
    ADDON_NOT_READY = "TN09653" "add-on-not-ready",
        why: "the object was applied and did not become ready within its deadline",
        fix: "look at the object and its pods with kubectl; run the stage again, or set the annotation `tenon/wait: \"false\"` on objects that need not be waited for";
    JOB_BROKEN = "TN03658" "add-on-broken",
        why: "the object says that it will never be ready",
        fix: "look at its pods with kubectl, correct the add-on, delete the object, and run the stage again";
    ETCD_MEMBERS = "TN12650" "foreign-etcd-member",
        why: "the first master's etcd must have one member, itself; others mean that the data belongs to another cluster",
        fix: "check the data directory and the etcd endpoints of the config; move the data away only if no cluster needs it";
    ETCD_DATA_EXISTS = "TN12651" "etcd-data-exists",
        why: "the data directory holds a cluster that this bootstrap did not start; starting another over it would destroy it",
        fix: "if the data is of no use, move the directory away (or `tenon stage reset bootstrap --wipe --delete-etcd-data`) and start again; otherwise this node has its cluster already";
    API_ANSWERS = "TN12652" "cluster-exists",
        why: "an API server answers at the cluster's endpoint and it is not ours: two bootstrap nodes must never both start a cluster",
        fix: "let this node join the cluster instead, or correct `spec.controlPlane.endpoint`";
    CLAIM_DIFFERS = "TN12653" "claim-differs",
        why: "an earlier run began to start a cluster with another certificate authority or name; going on would mix two clusters",
        fix: "restore the earlier files, or give the earlier attempt up with `tenon stage reset bootstrap --wipe`";
    NONCE_DIFFERS = "TN12654" "nonce-differs",
        why: "the cluster that answers was filled by another bootstrap than this one",
        fix: "check which etcd the API server uses (`spec.controlPlane.etcd`) and which node started the cluster";
}
