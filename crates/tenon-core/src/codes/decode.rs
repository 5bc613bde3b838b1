//! Pages about the layers around a document (base64, gzip, MIME) and its syntax: `TN03200` to `TN03299`.

super::pages! {
    BAD_SYNTAX = "TN03200" "bad-syntax",
        why: "the document is neither YAML nor JSON",
        fix: "correct the text at the place shown";
}
