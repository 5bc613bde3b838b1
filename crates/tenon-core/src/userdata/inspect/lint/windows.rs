//! Rules about the tags and strings of Windows user data.

use super::super::node::Kind;
use super::super::settings::powershell_open_quote;
use super::super::windows::blocks;
use super::{Case, at};
use crate::codes::inspect::U020;

pub(super) fn check(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        let whole =
            matches!(node.kind, Kind::PowerShell | Kind::Batch) && !node.children.is_empty();
        if !whole {
            continue;
        }
        let text = node.text();
        for block in blocks(&text) {
            let place = at(node, &trail, block.line);
            if !block.closed {
                case.error(&U020, "a tag is opened and never closed", place.clone());
            }
            let open = (block.kind == Kind::PowerShell).then(|| powershell_open_quote(block.body));
            if let Some(line) = open.flatten() {
                let what = "a string is opened and never closed";
                case.error(&U020, what, at(node, &trail, block.line + line - 1));
            }
        }
        let lower = text.to_ascii_lowercase();
        for tag in ["powershell", "script"] {
            let (opened, closed) = (format!("<{tag}>"), format!("</{tag}>"));
            if lower.matches(&closed).count() > lower.matches(&opened).count() {
                let what = format!("`{closed}` stands inside a body and ends it there");
                case.error(&U020, what, at(node, &trail, 0));
            }
        }
    }
}
