//! Pages about the layers around a document (base64, gzip, MIME) and its syntax, and about
//! argument lines of `bootstrap.sh`: `TN03200` to `TN03299`.

super::pages! {
    BAD_SYNTAX = "TN03200" "bad-syntax",
        why: "the document is neither YAML nor JSON",
        fix: "correct the text at the place shown";
    TAB_INDENT = "TN03201" "tab-indent",
        why: "YAML indents with spaces only, because a tab has no agreed width",
        fix: "replace the tabs at the start of the line by spaces";
    TEMPLATE_LEFT = "TN03202" "template-left",
        why: "`{{ … }}` and `${ … }` belong to the tool that renders the text; here nothing replaces them",
        fix: "render the template before it becomes user data, or quote the value if the braces are meant";
    DUPLICATE_KEY = "TN03203" "duplicate-key",
        why: "of two equal keys in one map only one can count, and readers disagree about which",
        fix: "remove one of the two, or join their values";
    BAD_KEY = "TN03204" "bad-key",
        why: "keys are text; a list or a map cannot be one",
        fix: "quote the key, or check the brackets before it";
    BAD_TAG = "TN03205" "bad-tag",
        why: "only the tags of plain YAML are read; others, such as CloudFormation's, belong to the tool that expands them",
        fix: "remove the tag, or expand it before the text becomes user data";
    ALIAS_LOOP = "TN03206" "alias-loop",
        why: "a node that contains itself has no end",
        fix: "write the value out instead of repeating it with an alias";
    TOO_LARGE_DOCUMENT = "TN03207" "document-limit",
        why: "documents are read within fixed limits (1 MiB, 64 levels, 100,000 nodes, 64 KiB per scalar, 384 KiB for certificateAuthority, 10,000 entries per list or map), so that a small text cannot use up the machine",
        fix: "make the document smaller; large files do not belong into a node's configuration";
    TOO_LARGE_SOURCE = "TN03210" "source-limit",
        why: "user data is read up to 64 KiB, files and standard input up to 1 MiB",
        fix: "make the source smaller, or split it into several files";
    BAD_ENCODING = "TN03211" "bad-encoding",
        why: "configuration is UTF-8 text, plain or wrapped in base64, gzip or MIME",
        fix: "save the text as UTF-8";
    BAD_BASE64 = "TN03212" "bad-base64",
        why: "the text is base64 from end to end, but does not decode: something was cut off or changed on the way",
        fix: "encode it again with the standard alphabet and padding, as `base64` does";
    BAD_GZIP = "TN03213" "bad-gzip",
        why: "the gzip stream is damaged or cut off, so its content cannot be trusted",
        fix: "compress the text again and compare the size of what arrives";
    GZIP_LIMIT = "TN03214" "gzip-limit",
        why: "a gzip layer may give 1 MiB and 200 times its own size, all layers of a run together 4 MiB; a small input that grows further is no configuration",
        fix: "make the configuration smaller, or pass it without compression";
    LAYER_LIMIT = "TN03215" "layer-limit",
        why: "at most two gzip and two base64 layers are removed",
        fix: "encode the text once; tools in the chain probably each encode it again";
    MIME_LIMIT = "TN03216" "mime-limit",
        why: "a message is read up to 64 parts, 2 levels and 8 KiB of headers for each part",
        fix: "put the configuration into fewer parts";
    BAD_TRANSFER = "TN03217" "bad-transfer-encoding",
        why: "the part's body does not follow its Content-Transfer-Encoding",
        fix: "use 7bit for plain text, or encode the body again as the header says";
    NO_BLANK_LINE = "TN03220" "no-blank-line",
        why: "headers end at the first empty line; without one the body is read as headers",
        fix: "put an empty line between the headers and the content";
    NO_BOUNDARY = "TN03221" "boundary-not-found",
        why: "parts are separated by lines of `--` and the boundary that the Content-Type names",
        fix: "use the same boundary in the Content-Type header and in the lines between the parts";
    NO_FINAL_BOUNDARY = "TN03222" "no-final-boundary",
        why: "a message ends with `--`, the boundary and `--`; without that line nobody can tell whether its end was cut off",
        fix: "add the closing line after the last part";
    PART_WITHOUT_TYPE = "TN03223" "part-without-type",
        why: "parts are chosen by their Content-Type; without one a part is plain text and not read",
        fix: "give the part the header `Content-Type: application/node.eks.aws`";
    PART_OF_OTHER_TYPE = "TN03224" "part-of-other-type",
        why: "a NodeConfig is read from parts of the types application/node.eks.aws and application/tenon.dev only",
        fix: "change the part's Content-Type to the one of its apiVersion";
    INDENTED_BY_TEMPLATE = "TN03225" "indented-by-template",
        why: "every line is indented, as when a template inserts the text without removing its own indentation",
        fix: "remove the common indentation, for instance with the template's dedent or `<<~` form";
    SCRIPT_ONLY = "TN03226" "script-only",
        why: "the text is a script, as cloud-init runs it, and holds no NodeConfig",
        fix: "make it a MIME message with the script as one part and a NodeConfig as another";
    BOOTSTRAP_CALL = "TN03227" "bootstrap-call",
        why: "/etc/eks/bootstrap.sh belongs to older images; nodes of this kind are described by a NodeConfig",
        fix: "turn the call into a NodeConfig with `tenon config convert`, or keep it where bootstrap.sh is Tenon";
    UNCLOSED_QUOTE = "TN03240" "unclosed-quote",
        why: "words are split as a shell splits them, and a quote or backslash has no partner",
        fix: "close the quote";
    NOT_EXPANDED = "TN03241" "not-expanded",
        why: "arguments are split without expansion: variables and commands in them are not run",
        fix: "write the value itself, or put the character in single quotes if it is meant as it stands";
    UNKNOWN_OPTION = "TN03242" "unknown-bootstrap-option",
        why: "the option is not one of bootstrap.sh",
        fix: "correct or remove the option";
    BAD_OPTION = "TN03243" "bad-bootstrap-option",
        why: "the option has no value, or one that it cannot take",
        fix: "give the option a value of the form shown";
    IGNORED_OPTION = "TN03244" "ignored-bootstrap-option",
        why: "the option concerns dockerd, which no longer runs nodes",
        fix: "remove the option";
    NO_CLUSTER_NAME = "TN03245" "no-cluster-name",
        why: "bootstrap.sh takes exactly one word beside its options: the name of the cluster",
        fix: "give the cluster's name once: `bootstrap.sh CLUSTER_NAME [options]`";
    OPTIONS_DISAGREE = "TN03246" "options-disagree",
        why: "two options ask for different things, or one needs another that is missing",
        fix: "change or add one of the options named";
}
