//! What PowerShell text does to the settings, as far as its words are literal.

use std::collections::BTreeMap;

use super::normal::{self, Setter};
use super::{Settings, Signal};

/// The image's script, and the variable that user data calls it by.
const BOOTSTRAP: [&str; 2] = ["start-eksbootstrap.ps1", "$eksbootstrapscriptfile"];

const SIGNAL: &str = "Send-CFNResourceSignal";

/// A word of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// As written, quotes included.
    pub(super) raw: String,
    /// Its text, when no variable is in it.
    pub(super) value: Option<String>,
    /// Variables in it are named here, in order; a token that is one variable has one.
    variable: Option<String>,
}

/// A statement with the line on which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) tokens: Vec<Token>,
    pub(super) line: u32,
    pub(super) last_line: u32,
}

/// A text as statements; `open` is the line of a quote that is never closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Parsed {
    pub(super) statements: Vec<Statement>,
    pub(super) open: Option<u32>,
}

/// Reads statements, separated by line ends and `;`, continued by a backquote.
pub(super) fn parse(text: &str) -> Parsed {
    let mut lexer = Lexer { chars: text.chars().collect(), line: 1, ..Lexer::default() };
    lexer.run();
    lexer.parsed
}

#[derive(Default)]
struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: u32,
    parsed: Parsed,
    tokens: Vec<Token>,
    start: u32,
    token: Option<Token>,
}

impl Lexer {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied()?;
        self.at += 1;
        self.line += u32::from(c == '\n');
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn run(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '\n' | ';' => {
                    self.end_statement();
                    self.next();
                }
                '#' if self.token.is_none() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                '\'' | '\u{2018}'..='\u{201b}' => self.single_quotes(),
                '"' => self.double_quotes(),
                '`' => self.backquote(),
                '$' => self.variable(),
                '@' if self.is_here_string() => self.here_string(),
                c if c.is_whitespace() => {
                    self.next();
                    self.end_token();
                }
                _ => {
                    self.next();
                    self.push(c, c.into());
                }
            }
        }
        self.end_statement();
    }

    fn token(&mut self) -> &mut Token {
        if self.tokens.is_empty() && self.token.is_none() {
            self.start = self.line;
        }
        self.token.get_or_insert_with(|| Token {
            raw: String::new(),
            value: Some(String::new()),
            variable: None,
        })
    }

    fn push(&mut self, raw: char, text: String) {
        let token = self.token();
        token.raw.push(raw);
        if let Some(value) = &mut token.value {
            value.push_str(&text);
        }
    }

    fn raw(&mut self, c: char) {
        self.token().raw.push(c);
    }

    fn end_token(&mut self) {
        self.tokens.extend(self.token.take());
    }

    fn end_statement(&mut self) {
        self.end_token();
        let tokens = std::mem::take(&mut self.tokens);
        if !tokens.is_empty() {
            let statement = Statement { tokens, line: self.start, last_line: self.line };
            self.parsed.statements.push(statement);
        }
    }

    fn single_quotes(&mut self) {
        let (line, open) = (self.line, self.next());
        self.token();
        open.into_iter().for_each(|c| self.raw(c));
        let is_quote = |c: char| c == '\'' || ('\u{2018}'..='\u{201b}').contains(&c);
        while let Some(c) = self.next() {
            if !is_quote(c) {
                self.push(c, c.into());
            } else if self.peek().is_some_and(is_quote) {
                self.next();
                self.push(c, c.into());
            } else {
                return self.raw(c);
            }
        }
        self.parsed.open.get_or_insert(line);
    }

    fn double_quotes(&mut self) {
        let line = self.line;
        self.next();
        self.raw('"');
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.next();
                    return self.raw('"');
                }
                '`' => self.backquote(),
                '$' => self.variable(),
                _ => {
                    self.next();
                    self.push(c, c.into());
                }
            }
        }
        self.parsed.open.get_or_insert(line);
    }

    /// True at `@'` or `@"` with nothing after it on the line.
    fn is_here_string(&self) -> bool {
        let quote = self.chars.get(self.at + 1).is_some_and(|c| ['\'', '"'].contains(c));
        let rest = self.chars.iter().skip(self.at + 2);
        quote && rest.take_while(|c| **c != '\n').all(|c| c.is_whitespace())
    }

    /// Text of several lines, up to a line that starts with the quote and `@`.
    fn here_string(&mut self) {
        let line = self.line;
        self.next();
        let Some(quote) = self.next() else { return };
        self.token().value = None;
        let mut at_start = false;
        while let Some(c) = self.next() {
            if at_start && c == quote && self.peek() == Some('@') {
                self.next();
                return;
            }
            at_start = c == '\n';
        }
        self.parsed.open.get_or_insert(line);
    }

    /// An escape; before a line end it joins the lines.
    fn backquote(&mut self) {
        self.next();
        let carriage = self.peek() == Some('\r');
        if carriage {
            self.next();
        }
        match self.next() {
            Some('\n') => self.end_token(),
            Some(c) => self.push(c, c.into()),
            None => {}
        }
    }

    fn variable(&mut self) {
        self.next();
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || "_:".contains(*c)) {
            name.push(c);
            self.next();
        }
        let token = self.token();
        let alone = token.raw.is_empty() || token.raw == "\"";
        token.raw.push('$');
        token.raw.push_str(&name);
        token.value = None;
        token.variable = Some(name).filter(|_| alone);
    }
}

/// Follows a script; the lines of its call to the image's script come back.
pub(super) fn follow(text: &str, from: &str, settings: &mut Settings) -> Option<(u32, u32)> {
    for address in super::scripts::addresses(text) {
        settings.remote.entry(address).or_insert_with(|| from.to_owned());
    }
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut joined = None;
    for statement in parse(text).statements {
        if let Some((name, value)) = assignment(&statement) {
            match value {
                Some(value) => variables.insert(name, value),
                None => variables.remove(&name),
            };
        } else if is_bootstrap(&statement) {
            parameters(&statement, &variables, from, settings);
            joined = joined.or(Some((statement.line, statement.last_line)));
            let by = "Start-EKSBootstrap.ps1".to_owned();
            settings.join.get_or_insert_with(|| (by, from.to_owned()));
        } else if statement.tokens.iter().any(|token| token.raw.eq_ignore_ascii_case(SIGNAL)) {
            settings.signals.push(Signal { by: SIGNAL.into(), from: from.to_owned() });
        }
    }
    joined
}

/// `$name = value`, also with a type in front and without blanks.
fn assignment(statement: &Statement) -> Option<(String, Option<String>)> {
    let first = statement.tokens.first()?;
    let start = first.raw.find('$')?;
    if !first.raw[..start].is_empty() && !first.raw[..start].ends_with(']') {
        return None;
    }
    let name = |raw: &str| raw[1..].split('=').next().unwrap_or_default().to_ascii_lowercase();
    match &statement.tokens[1..] {
        [equals, value] if equals.raw == "=" => {
            Some((name(&first.raw[start..]), value.value.clone()))
        }
        [equals, ..] if equals.raw == "=" => Some((name(&first.raw[start..]), None)),
        [] if first.raw.contains('=') => Some((name(&first.raw[start..]), None)),
        _ => None,
    }
}

fn is_bootstrap(statement: &Statement) -> bool {
    let called = |token: &Token| {
        let raw = token.raw.to_ascii_lowercase();
        BOOTSTRAP.iter().any(|name| raw.trim_matches(['"', '\'']).ends_with(name))
    };
    let first = statement.tokens.first().is_some_and(|token| token.raw == "&" || called(token));
    first && statement.tokens.iter().take(2).any(called)
}

fn parameters(
    statement: &Statement,
    variables: &BTreeMap<String, String>,
    from: &str,
    settings: &mut Settings,
) {
    let mut setter = Setter { settings, from };
    let mut tokens = statement.tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        let Some(name) = token
            .raw
            .strip_prefix('-')
            .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            continue;
        };
        let Some(value) = tokens.next_if(|next| !next.raw.starts_with('-')) else { continue };
        let known = value.variable.as_ref().map(|name| name.to_ascii_lowercase());
        let text = value.value.clone().or_else(|| variables.get(&known?).cloned());
        match text {
            Some(text) => setter.windows_parameter(name, &text),
            None => setter.settings.set_at_run_time(normal::windows_key(name), from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::*;

    #[test]
    fn the_call_is_read_where_it_is_literal() {
        let text = "[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
            Write-Host 'pre'\n$ca = 'Q0E='\n\
            & $EKSBootstrapScriptFile -EKSClusterName 'it''s' -APIServerEndpoint \"https://e\" `\r\n  \
            -Base64ClusterCA $ca -DNSClusterIP $dns -KubeletExtraArgs '--node-labels=a=b' 3>&1 4>&1\n\
            Send-CFNResourceSignal -Status SUCCESS # done\n";
        let mut settings = Settings::default();
        let joined = follow(text, "block 1", &mut settings);
        let seen: Vec<_> =
            settings.values.iter().map(|(key, s)| format!("{}={}", shown(key), s.value)).collect();
        assert_eq!(
            seen,
            [
                "cluster.certificateAuthority=\"Q0E=\"",
                "cluster.endpoint=\"https://e\"",
                "cluster.name=\"it's\"",
                "labels.a=\"b\"",
            ]
        );
        assert_eq!(settings.run_time.keys().map(shown).collect::<Vec<_>>(), ["clusterDns"]);
        assert_eq!(joined, Some((4, 5)));
        assert_eq!(settings.signals.len(), 1);
    }

    #[test]
    fn open_quotes_are_noticed() {
        for (text, open) in [
            ("a 'b", Some(1)),
            ("a\nb \"c\nd", Some(2)),
            ("a 'b''' \"c`\"\"", None),
            ("# it's", None),
            ("$x = @'\nit's \"\n'@\nb", None),
            ("$x = @\"\nit's\n\"@ + 'c'", None),
            ("a\n@'\nopen", Some(2)),
        ] {
            assert_eq!(parse(text).open, open, "{text}");
        }
    }
}
