//! A timeline as one HTML page. It loads nothing: its own policy forbids it.

use std::fmt::Write;

use super::picture::{svg, title};
use super::{Boot, Span, chain, time};
use crate::xml::escape;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<style>:root{color-scheme:light dark}body{font:14px system-ui,sans-serif;max-width:960px;\
margin:24px auto;padding:0 12px}table{border-collapse:collapse}td,th{text-align:left;\
padding:2px 14px 2px 0}td.n{text-align:right;font-variant-numeric:tabular-nums}\
#d{min-height:1.5em;margin:8px 0}svg{max-width:100%;height:auto}g:hover rect{opacity:.75}\
</style>\n";

/// Tells in one line what the pointer is on; without scripts the browser's own hints remain.
const SCRIPT: &str = "<script>const d=document.getElementById('d');\
for(const g of document.querySelectorAll('svg g'))\
g.addEventListener('pointerenter',()=>{d.textContent=g.firstChild.textContent});</script>\n";

/// The page of a boot: picture, critical chain, every span.
pub fn html(boot: &Boot) -> String {
    let title = escape(&title(boot));
    let mut out = format!("{HEAD}<title>{title}</title></head><body>\n{}", svg(boot));
    out.push_str("<p id=\"d\">Point at a bar.</p>\n");
    if let Some(estimate) = &boot.estimate {
        let what_if = escape(&estimate.what_if.join(", "));
        let _ = writeln!(out, "<p><b>An estimate</b>, no measurement: with {what_if}.</p>");
    }
    let notes = boot.notes.iter().map(|note| format!("<p>Note: {}</p>\n", escape(note)));
    out.extend(notes);
    out.push_str("<h2>Critical chain</h2>\n<table>\n");
    for link in chain::critical(boot) {
        out.push_str(&line(link.span, link.own_us));
    }
    out.push_str("</table>\n<h2>Longest first</h2>\n<table>\n");
    for span in chain::blame(boot) {
        out.push_str(&line(span, span.length_us()));
    }
    let _ = write!(out, "</table>\n{SCRIPT}</body></html>\n");
    out
}

fn line(span: &Span, us: i64) -> String {
    format!(
        "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        time(span.begin_us),
        time(us),
        escape(&span.name),
        span.kind.word(),
        escape(&span.note)
    )
}
