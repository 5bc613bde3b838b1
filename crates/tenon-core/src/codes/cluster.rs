//! Pages about talking to a Kubernetes API server: kubeconfigs, requests, tokens, discovery.

super::pages! {
    BAD_KUBECONFIG = "TN03625" "bad-kubeconfig",
        why: "the kubeconfig does not say which server to ask, whom to trust or who is asking",
        fix: "write it again with the tool that made it, or name another one with --kubeconfig";
    BAD_TOKEN = "TN03626" "not-a-bootstrap-token",
        why: "a bootstrap token is six characters, a dot and sixteen characters, all of them a-z or 0-9",
        fix: "copy the whole token, or make a new one with `tenon token create`";
    BAD_OBJECT = "TN03627" "bad-object",
        why: "an object needs apiVersion, kind and metadata.name before it can be sent",
        fix: "add the field named above to the manifest";
    BAD_CA_HASH = "TN03628" "bad-ca-hash",
        why: "the hash of a CA is `sha256:` and 64 hexadecimal digits, taken over its public key",
        fix: "copy the whole hash from the output of `tenon token create --print-join`";
    API_UNREACHABLE = "TN10625" "api-unreachable",
        why: "the API server gave no answer; the cause says whether the name, the port or the certificate is wrong",
        fix: "check the address in the kubeconfig and that the API server runs: `curl -k https://HOST:6443/livez`";
    API_REFUSED = "TN10626" "api-refused",
        why: "the API server answered and did not do what was asked; its own words are below",
        fix: "mend what the API server names and run again";
    API_FORBIDDEN = "TN10627" "api-forbidden",
        why: "the API server does not know the caller, or knows it and does not allow this",
        fix: "use a kubeconfig that may do this, such as --kubeconfig /etc/kubernetes/admin.conf";
    API_CONFLICT = "TN10628" "api-conflict",
        why: "another manager owns a field, or the object was changed or made by somebody else in the meantime",
        fix: "leave the field to the manager named below, or take it over with --force where the command has it";
    API_NOT_FOUND = "TN10629" "api-not-found",
        why: "the API server has no such object",
        fix: "check the name and the namespace";
    API_ANSWER = "TN10630" "api-answer",
        why: "what answered does not speak like a Kubernetes API server; a proxy or load balancer may stand between",
        fix: "check the address in the kubeconfig";
    UNKNOWN_KIND = "TN10631" "kind-not-served",
        why: "the API server serves no such kind: its CustomResourceDefinition is not there, or not yet established",
        fix: "apply the definition first, or correct apiVersion and kind";
    UNTRUSTED_CLUSTER = "TN10632" "untrusted-cluster",
        why: "what answers at the endpoint cannot prove that it is the cluster of this token, so nothing is sent to it",
        fix: "check endpoint, token and CA hash; make new ones with `tenon token create --print-join`";
    API_WAIT = "TN09625" "api-wait",
        why: "the cluster did not get into the expected state within its time",
        fix: "look at what was seen last, mend it and run again: it continues where this run stopped";
    CSR_LEFT_PENDING = "TN01625" "csr-left-pending",
        why: "a serving certificate is only approved when every rule holds; nothing was denied",
        fix: "look at the request with `kubectl describe csr NAME`; if you trust it, name it: `tenon csr approve NAME`";
}
