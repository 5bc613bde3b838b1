//! Pages about keys and certificates of a control plane.

super::pages! {
    PKI_INPUT = "TN03600" "pki-input",
        why: "certificates name the node, its address and the endpoint, so these must be known before any is made",
        fix: "give the flag named above, or the field in the config given with --config";
    PKI_NAME = "TN03601" "pki-unknown-name",
        why: "the name is not in the table of certificates of a control plane",
        fix: "`tenon pki show` lists the names";
    CERTIFICATE_WITHOUT_KEY = "TN12600" "certificate-without-key",
        why: "a certificate whose key is gone cannot be used, and a new key would silently make a new identity",
        fix: "bring the key back from a backup; or move the certificate away to have both made anew";
    BAD_PEM = "TN12601" "bad-pem",
        why: "the file is there but does not hold what its name says; nothing was overwritten",
        fix: "bring the file back from a backup, or move it away to have it made anew";
    CERTIFICATE_UNFIT = "TN12602" "certificate-unfit",
        why: "existing certificates are used as they are or not at all; nothing was overwritten",
        fix: "make it anew with `tenon pki renew --only NAME`, or move it away and run again";
    CA_EXPIRED = "TN12603" "ca-expired",
        why: "nobody trusts what an expired CA has signed or would sign; renewing leaves does not help",
        fix: "check the clock first (`date`). If it is right: replace the CA (docs/guides/pki.md, an expired CA)";
    CA_NOT_YET_VALID = "TN12604" "ca-not-yet-valid",
        why: "the CA begins in the future of this machine's clock, so one of the two is wrong",
        fix: "set the clock of this machine right and run again";
    EXTERNAL_CA_WAITS = "TN12605" "external-ca-waits",
        why: "the CA's key is kept elsewhere, so its certificates must be signed there",
        fix: "sign the requests, put the certificates beside their keys and run again; --csr-dir DIR writes the requests";
    CA_UNUSABLE = "TN12606" "ca-unusable",
        why: "the CA certificate has a subject or a key that cannot sign here",
        fix: "sign outside: remove the key and use --external-ca with --csr-dir DIR";
    CA_RENEWAL = "TN03602" "ca-not-renewed",
        why: "every certificate of the cluster hangs on its CA; it is replaced by a procedure, not by a renewal",
        fix: "see docs/guides/pki.md, replacing a CA";
    EXPIRES_SOON = "TN01600" "certificate-expires-soon",
        why: "components stop trusting each other when it expires",
        fix: "`tenon pki renew --within 30d`, then restart the component that uses it";
    EXPIRED = "TN01601" "certificate-expired",
        why: "nobody accepts the certificate any more",
        fix: "check the clock first (`date`), then `tenon pki renew --only NAME` and restart the component";
    NOT_YET_VALID = "TN01602" "certificate-not-yet-valid",
        why: "the certificate begins in the future of this machine's clock",
        fix: "set the clock of this machine right";
    WRONG_ISSUER = "TN01603" "certificate-wrong-issuer",
        why: "the certificate was not signed by the CA that its users trust",
        fix: "`tenon pki renew --only NAME` signs it by the CA that is here";
    NAMES_DRIFTED = "TN01604" "certificate-names-drifted",
        why: "clients that use one of the missing names will refuse the connection",
        fix: "`tenon pki renew --only NAME` with the same flags or config, then restart the component";
    KEY_MISMATCH = "TN01605" "certificate-key-mismatch",
        why: "certificate and key do not belong together, so no connection can be made with them",
        fix: "bring back the pair from a backup, or `tenon pki renew --only NAME` to sign the key that is here";
    WIDE_MODE = "TN01606" "key-readable-by-others",
        why: "whoever can read the key can be this component",
        fix: "`chmod 600 FILE`, and renew with --new-key if others may have read it";
    MISSING = "TN01607" "certificate-missing",
        why: "the component that uses it cannot start",
        fix: "`tenon pki init` makes what is missing and leaves the rest alone";
    WRONG_CONTENT = "TN01608" "certificate-wrong-content",
        why: "subject or usages are not those that the other components expect",
        fix: "`tenon pki renew --only NAME`";
    OTHER_CA = "TN01610" "kubeconfig-other-ca",
        why: "whoever uses the kubeconfig refuses the API server, or talks to another cluster",
        fix: "move the kubeconfig away and run `tenon pki init`: it is made anew with the CA that is here";
    NAMES_NOT_COMPARED = "TN01609" "certificate-names-not-compared",
        why: "without the node's name, address and endpoint nobody knows which names the certificates should have",
        fix: "give --node-name, --advertise-address, --endpoint and --service-cidr, or --config";
}
