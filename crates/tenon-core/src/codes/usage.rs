//! Pages about the command line (`TN64…`) and about Tenon's own mistakes (`TN70…`).

super::pages! {
    BAD_USAGE = "TN64001" "bad-usage",
        why: "the command line asks for something that does not exist or does not go together",
        fix: "see `tenon help`";
    BUG = "TN70001" "bug",
        why: "Tenon met a state that it holds to be impossible",
        fix: "please report it with the version and the code; nothing was changed after this point";
}
