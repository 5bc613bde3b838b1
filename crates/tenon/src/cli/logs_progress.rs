//! How far a collection has come: a bar on a terminal, lines elsewhere, objects for programs.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde_json::json;
use tenon_host::collect::Progress;

use super::logs_read::size;
use crate::output;

/// `--progress`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Style {
    Auto,
    Bar,
    Json,
    None,
}

/// Columns of the bar itself.
const BAR: usize = 20;
/// The bar must fit a small terminal; names are cut.
const NAME: usize = 28;

/// Tells the progress on standard error.
pub struct Teller {
    style: Option<Style>,
    /// Groups that were named already.
    told: Vec<String>,
}

impl Teller {
    pub fn new(style: Style, quiet: bool) -> Self {
        let style = match style {
            Style::None => None,
            _ if quiet && style != Style::Json => None,
            Style::Auto if std::io::stderr().is_terminal() => Some(Style::Bar),
            style => Some(style),
        };
        Teller { style, told: Vec::new() }
    }

    pub fn tell(&mut self, progress: &Progress<'_>) {
        let Progress { done, of, item, bytes, left } = progress;
        match self.style {
            None | Some(Style::None) => {}
            Some(Style::Json) => {
                let object = json!({
                    "done": done, "of": of, "path": item.path, "status": item.status.name(),
                    "bytes": item.bytes, "totalBytes": bytes, "ms": item.ms,
                });
                output::tell(&format!("{object}\n"));
            }
            Some(Style::Bar) => {
                let full = BAR * done / of.max(&1);
                let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR - full.min(BAR)));
                let name: String = item.path.chars().take(NAME).collect();
                output::tell(&format!(
                    "\r[{bar}] {done}/{of} {:<8} {:>3} s left {name:<NAME$}",
                    size(*bytes),
                    left.as_secs()
                ));
            }
            Some(Style::Auto) => {
                if !self.told.contains(&item.group) {
                    self.told.push(item.group.clone());
                    output::tell(&format!(
                        "{} ({done} of {of} items, {})\n",
                        item.group,
                        size(*bytes)
                    ));
                }
            }
        }
    }

    /// Clears the bar away.
    pub fn end(&self) {
        if self.style == Some(Style::Bar) {
            output::tell(&format!("\r{}\r", " ".repeat(BAR + NAME + 32)));
        }
    }
}
