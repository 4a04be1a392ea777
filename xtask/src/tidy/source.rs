//! Tells the code of a Rust file from its comments and string literals.
//!
//! The checks that look for words use the code alone, so that a comment may name what it forbids.
//! This is a scanner, not a parser: it knows comments, strings, raw strings, characters and
//! lifetimes, and nothing else.

/// What a character of a Rust file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everything that is neither of the others.
    Code,
    /// A comment, with its slashes.
    Comment,
    /// A string or character literal, with its quotes.
    Literal,
}

/// One line of a Rust file.
pub(crate) struct Line {
    /// The line as it stands.
    pub(crate) text: String,
    /// The line with comments and literals blanked out, column by column.
    pub(crate) code: String,
    kinds: Vec<Kind>,
}

impl Line {
    /// What the character at `column` (from 0) belongs to.
    pub(crate) fn kind(&self, column: usize) -> Kind {
        self.kinds.get(column).copied().unwrap_or(Kind::Code)
    }
}

/// Splits `text` into lines and tells code from the rest.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut scanner = Scanner { chars: &chars, kinds: Vec::with_capacity(chars.len()) };
    scanner.scan();
    let kinds = scanner.kinds;
    let mut start = 0;
    text.lines()
        .map(|line| {
            let length = line.chars().count();
            let kinds = kinds[start..start + length].to_vec();
            start += length;
            while start < chars.len() && chars[start] != '\n' {
                start += 1;
            }
            start += 1;
            let code = line
                .chars()
                .zip(&kinds)
                .map(|(c, &kind)| if kind == Kind::Code { c } else { ' ' })
                .collect();
            Line { text: line.to_owned(), code, kinds }
        })
        .collect()
}

/// The place of `word` in `code` where it begins: no letter, digit or `_` joins it on the left.
pub(crate) fn find_word(code: &str, word: &str) -> Option<usize> {
    code.match_indices(word)
        .map(|(at, _)| at)
        .find(|&at| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The lines that remain when the `#[cfg(test)]` modules are taken out.
pub(crate) fn lines_without_tests(lines: &[Line]) -> usize {
    let mut count = 0;
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        if line.code.trim() == "#[cfg(test)]"
            && let Some(length) = inline_module_length(after)
        {
            rest = &after[length..];
        } else {
            count += 1;
            rest = after;
        }
    }
    count
}

/// How many lines the module takes that begins on the first of `lines`, if one with a body does.
fn inline_module_length(lines: &[Line]) -> Option<usize> {
    let first = lines.first()?;
    if find_word(&first.code, "mod ").is_none() || !first.code.contains('{') {
        return None;
    }
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        let opened = line.code.matches('{').count();
        let closed = line.code.matches('}').count();
        depth = (depth + opened).saturating_sub(closed);
        if depth == 0 {
            return Some(index + 1);
        }
    }
    Some(lines.len())
}

struct Scanner<'a> {
    chars: &'a [char],
    /// What the characters up to here are; its length is the place of the scanner.
    kinds: Vec<Kind>,
}

impl Scanner<'_> {
    fn scan(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if !self.continues_a_word() => self.raw_string(),
                ('\'', _) => self.quote(),
                _ => self.take(1, Kind::Code),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.kinds.len() + ahead).copied()
    }

    fn take(&mut self, count: usize, kind: Kind) {
        let end = (self.kinds.len() + count).min(self.chars.len());
        self.kinds.resize(end, kind);
    }

    /// Whether the character before this one belongs to the same word; the `b` of `br"..."` does
    /// not count.
    fn continues_a_word(&self) -> bool {
        let at = self.kinds.len();
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        match at.checked_sub(1).map(|before| self.chars[before]) {
            Some('b' | 'c') => at >= 2 && joins(self.chars[at - 2]),
            Some(c) => joins(c),
            None => false,
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take(1, Kind::Comment);
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.take(1, Kind::Comment);
                    continue;
                }
            }
            self.take(2, Kind::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(1, Kind::Literal);
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.take(2, Kind::Literal),
                '"' => return self.take(1, Kind::Literal),
                _ => self.take(1, Kind::Literal),
            }
        }
    }

    /// `r"..."`, `r#"..."#` and so on; a raw identifier such as `r#type` is code.
    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.peek(1 + hashes) == Some('#') {
            hashes += 1;
        }
        if self.peek(1 + hashes) != Some('"') {
            return self.take(1, Kind::Code);
        }
        self.take(2 + hashes, Kind::Literal);
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && (1..=hashes).all(|n| self.peek(n) == Some('#'));
            if closes {
                return self.take(1 + hashes, Kind::Literal);
            }
            self.take(1, Kind::Literal);
        }
    }

    /// A character literal, or else a lifetime, which is code.
    fn quote(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some('\\'), _) => {
                self.take(3, Kind::Literal);
                while self.peek(0).is_some_and(|c| c != '\'' && c != '\n') {
                    self.take(1, Kind::Literal);
                }
                self.take(1, Kind::Literal);
            }
            (Some(_), Some('\'')) => self.take(3, Kind::Literal),
            _ => self.take(1, Kind::Code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code.trim_end().to_owned()).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_and_columns_kept() {
        let blank = " ".repeat("\"std::env\"".len());
        assert_eq!(code("let a = \"std::env\"; // std::time\n"), [format!("let a = {blank};")]);
        assert_eq!(code("a /* b /* c */ d */ e\n"), ["a                   e"]);
    }

    #[test]
    fn quotes_inside_characters_and_raw_strings_do_not_open_strings() {
        assert_eq!(code("f('\"', b, '\\'', 'x')"), ["f(   , b,     ,    )"]);
        assert_eq!(code("a(r#\"x\"y\"#, br\"\\\", z)"), ["a(        , b    , z)"]);
        assert_eq!(code("fn f<'a>(r#type: &'a str)"), ["fn f<'a>(r#type: &'a str)"]);
    }

    #[test]
    fn a_string_may_go_over_several_lines() {
        assert_eq!(code("a \"x\ny\\\"\nz\" b"), ["a", "", "   b"]);
    }

    #[test]
    fn modules_of_tests_do_not_count_as_lines_of_a_file() {
        let text =
            "//! x\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\nfn h() {}\n";
        assert_eq!(lines_without_tests(&lines(text)), 3);
        assert_eq!(lines_without_tests(&lines("#[cfg(test)]\nmod tests;\nfn f() {}\n")), 3);
    }

    #[test]
    fn a_word_is_found_only_where_it_begins() {
        assert_eq!(find_word("my_serde::x; serde::y", "serde"), Some(13));
        assert_eq!(find_word("pprintln!()", "println!"), None);
    }
}
