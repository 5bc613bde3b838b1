//! Byte offsets from the parser's marks, which count characters.

use crate::tree::Span;

const STRIDE: usize = 64;

/// The byte offset of every 64th character of a text, so that finding one is a short walk.
pub(super) struct Offsets<'a> {
    text: &'a str,
    strides: Vec<usize>,
}

impl<'a> Offsets<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let strides = text.char_indices().step_by(STRIDE).map(|(offset, _)| offset).collect();
        Offsets { text, strides }
    }

    /// The byte offset of a character; the text's length for one past its end.
    pub(super) fn byte(&self, character: usize) -> usize {
        let Some(start) = self.strides.get(character / STRIDE) else { return self.text.len() };
        let walk = self.text[*start..].char_indices().nth(character % STRIDE);
        walk.map_or(self.text.len(), |(offset, _)| start + offset)
    }

    /// A span of the parser, cut to its first line.
    pub(super) fn span(&self, span: &saphyr_parser::Span) -> Span {
        let offset = self.byte(span.start.index());
        let end = self.byte(span.end.index()).max(offset);
        let words = self.text[offset..end].lines().next().unwrap_or("").trim_end();
        Span {
            offset,
            line: number(span.start.line()),
            column: number(span.start.col() + 1),
            width: number(words.chars().count()).max(1),
        }
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_become_bytes() {
        let text = "é".repeat(100) + "x" + &"語".repeat(100);
        let offsets = Offsets::new(&text);
        for (character, byte) in
            [(0, 0), (1, 2), (64, 128), (100, 200), (101, 201), (102, 204), (201, 501), (900, 501)]
        {
            assert_eq!(offsets.byte(character), byte, "character {character}");
        }
        assert_eq!(Offsets::new("").byte(0), 0);
    }
}
