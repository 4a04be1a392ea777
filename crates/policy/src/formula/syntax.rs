//! The text of a formula as a tree, and the tree as text.
//!
//! Whatever the text, reading never panics; what a tree is written as reads as the same tree. What
//! names mean is the affair of [`super::check`].

use std::fmt;

/// Formulas of more parts are refused: nobody could read them.
const MOST_PARTS: usize = 300;
/// How deep parentheses, signs and calls may be nested.
const DEEPEST: u32 = 40;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number of 0 or more.
    Number(f64),
    /// A signal or a class.
    Name(String),
    /// `-x` or `not x`.
    Unary(Unary, Box<Expr>),
    /// Two expressions and what is between them.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `name(x, ...)`.
    Call(String, Vec<Expr>),
}

/// What stands before one expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`.
    Minus,
    /// `not`.
    Not,
}

/// What stands between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `or`.
    Or,
    /// `and`.
    And,
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>`.
    Greater,
    /// `>=`.
    AtLeast,
    /// `==`.
    Equal,
    /// `!=`.
    Unequal,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `*`.
    Times,
    /// `/`.
    Over,
}

/// How tightly comparisons, signs and whole parts bind.
const COMPARISON: u8 = 4;
const SIGN: u8 = 7;
const WHOLE: u8 = 8;

impl Binary {
    const ALL: [(&'static str, Binary, u8); 12] = [
        ("or", Binary::Or, 1),
        ("and", Binary::And, 2),
        ("<=", Binary::AtMost, COMPARISON),
        (">=", Binary::AtLeast, COMPARISON),
        ("==", Binary::Equal, COMPARISON),
        ("!=", Binary::Unequal, COMPARISON),
        ("<", Binary::Less, COMPARISON),
        (">", Binary::Greater, COMPARISON),
        ("+", Binary::Plus, 5),
        ("-", Binary::Minus, 5),
        ("*", Binary::Times, 6),
        ("/", Binary::Over, 6),
    ];

    fn entry(self) -> (&'static str, Binary, u8) {
        let entry = Binary::ALL.into_iter().find(|(_, binary, _)| *binary == self);
        entry.expect("all are listed")
    }
}

impl Expr {
    /// Reads `text`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(text: &str) -> Result<Expr, String> {
        let tokens = tokens(text)?;
        let mut reader = Reader { tokens, at: 0, depth: 0, parts: 0 };
        let expr = reader.expression(0)?;
        match reader.peek() {
            Token::End => Ok(expr),
            Token::Word("=") => Err("`=` compares nothing; write `==`".to_owned()),
            _ => Err(reader.unexpected("an operator or the end")),
        }
    }

    fn binds(&self) -> u8 {
        match self {
            Expr::Binary(binary, ..) => binary.entry().2,
            Expr::Unary(Unary::Not, _) => COMPARISON - 1,
            Expr::Unary(Unary::Minus, _) => SIGN,
            Expr::Number(_) | Expr::Name(_) | Expr::Call(..) => WHOLE,
        }
    }

    /// Writes it, in parentheses if it binds less tightly than `least`.
    fn write(&self, f: &mut fmt::Formatter<'_>, least: u8) -> fmt::Result {
        if self.binds() < least {
            write!(f, "(")?;
            self.write(f, 0)?;
            return write!(f, ")");
        }
        match self {
            Expr::Number(x) if *x != 0.0 && !(1e-6..1e15).contains(x) => write!(f, "{x:e}"),
            Expr::Number(x) => write!(f, "{x}"),
            Expr::Name(name) => write!(f, "{name}"),
            Expr::Unary(sign, inner) => {
                write!(f, "{}", if *sign == Unary::Not { "not " } else { "-" })?;
                inner.write(f, if *sign == Unary::Not { COMPARISON } else { SIGN })
            }
            Expr::Binary(binary, left, right) => {
                let (sign, _, binds) = binary.entry();
                left.write(f, binds + u8::from(binds == COMPARISON))?;
                write!(f, " {sign} ")?;
                right.write(f, binds + 1)
            }
            Expr::Call(name, inner) => {
                write!(f, "{name}(")?;
                for (at, expr) in inner.iter().enumerate() {
                    write!(f, "{}", if at == 0 { "" } else { ", " })?;
                    expr.write(f, 0)?;
                }
                write!(f, ")")
            }
        }
    }
}

/// As few parentheses as are needed.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Number(f64),
    /// A name, or a sign.
    Word(&'a str),
    End,
}

/// The tokens of `text`, with where they begin in characters, from 1; the last is the end.
fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let place = text[..text.len() - rest.len()].chars().count() + 1;
        let length = if first.is_ascii_digit() {
            number_length(rest)
        } else if first.is_ascii_alphabetic() {
            let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
            rest.find(|c| !inside(c)).unwrap_or(rest.len())
        } else {
            let signs = Binary::ALL.iter().map(|(sign, ..)| *sign).chain(["(", ")", ",", "="]);
            let sign = signs.into_iter().find(|sign| rest.starts_with(sign));
            sign.map(str::len).ok_or_else(|| {
                format!("found `{first}` at character {place}, which no formula has")
            })?
        };
        let word = &rest[..length];
        let token = if first.is_ascii_digit() {
            let number = word.parse::<f64>().ok().filter(|x| x.is_finite());
            Token::Number(number.ok_or_else(|| format!("`{word}` is not a number"))?)
        } else {
            Token::Word(word)
        };
        tokens.push((place, token));
        rest = rest[length..].trim_start();
    }
    tokens.push((text.chars().count() + 1, Token::End));
    Ok(tokens)
}

/// How long the number is that `text` begins with: `12`, `1.5` or `2e-3`.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

struct Reader<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    at: usize,
    depth: u32,
    parts: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Steps over `word` if it is next.
    fn skip(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, legal: &str) -> String {
        let (place, token) = self.tokens[self.at];
        match token {
            Token::End => format!("ends where {legal} is missing"),
            Token::Number(x) => format!("found `{x}` at character {place} instead of {legal}"),
            Token::Word(word) => format!("found `{word}` at character {place} instead of {legal}"),
        }
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Expr, String> {
        let mut left = self.operand()?;
        let mut compared = false;
        loop {
            let Token::Word(word) = self.peek() else { return Ok(left) };
            let found =
                Binary::ALL.iter().find(|(sign, _, binds)| *sign == word && *binds >= least);
            let Some((_, binary, binds)) = found else { return Ok(left) };
            if compared && *binds == COMPARISON {
                return Err("comparisons in a row; write `a < b and b < c`".to_owned());
            }
            compared = *binds == COMPARISON;
            self.at += 1;
            let right = self.expression(binds + 1)?;
            left = Expr::Binary(*binary, Box::new(left), Box::new(right));
        }
    }

    fn operand(&mut self) -> Result<Expr, String> {
        self.parts += 1;
        self.depth += 1;
        if self.parts > MOST_PARTS || self.depth > DEEPEST {
            return Err(format!(
                "is too long; at most {MOST_PARTS} parts, nested at most {DEEPEST} deep"
            ));
        }
        let start = self.at;
        let expr = match self.next() {
            Token::Number(x) => Expr::Number(x),
            Token::Word("-") => Expr::Unary(Unary::Minus, Box::new(self.expression(SIGN)?)),
            Token::Word("not") => Expr::Unary(Unary::Not, Box::new(self.expression(COMPARISON)?)),
            Token::Word("(") => {
                let inner = self.expression(0)?;
                self.close()?;
                inner
            }
            Token::Word(name) if is_name(name) => self.named(name)?,
            _ => {
                self.at = start;
                return Err(self.unexpected("a number, a name or `(`"));
            }
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn named(&mut self, name: &str) -> Result<Expr, String> {
        if !self.skip("(") {
            return Ok(Expr::Name(name.to_owned()));
        }
        let mut inner = vec![self.expression(0)?];
        while self.skip(",") {
            inner.push(self.expression(0)?);
        }
        self.close()?;
        Ok(Expr::Call(name.to_owned(), inner))
    }

    fn close(&mut self) -> Result<(), String> {
        if self.skip(")") { Ok(()) } else { Err(self.unexpected("`)`")) }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && word != "and" && word != "or"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled(text: &str) -> Result<String, String> {
        Expr::read(text).map(|expr| expr.to_string())
    }

    #[test]
    fn a_formula_is_spelled_with_as_few_parentheses_as_it_needs() {
        for (text, canonical) in [
            ("-uncached_tokens*(in_flight+1)", "-uncached_tokens * (in_flight + 1)"),
            ("((a+b)+c)-(d-e)", "a + b + c - (d - e)"),
            ("a/(b*c)/d", "a / (b * c) / d"),
            ("waiting<64 or(class==critical)", "waiting < 64 or class == critical"),
            ("not (a<b and c<d)", "not (a < b and c < d)"),
            ("not a<b and c<d", "not a < b and c < d"),
            ("--x - -(y+1)", "--x - -(y + 1)"),
            ("if( a<1 , min(b,2.50) , 1e-9 )", "if(a < 1, min(b, 2.5), 1e-9)"),
            ("1E3 + 0.5e+1", "1000 + 5"),
        ] {
            assert_eq!(spelled(text).as_deref(), Ok(canonical), "{text}");
        }
    }

    #[test]
    fn malformed_formulas_are_refused_with_what_is_wrong_and_where() {
        for (text, complaint) in [
            ("", "ends where a number, a name or `(` is missing"),
            ("1 +", "ends where a number, a name or `(` is missing"),
            ("(1 + a", "ends where `)` is missing"),
            ("1 + * 2", "found `*` at character 5 instead of a number, a name or `(`"),
            ("a b", "found `b` at character 3 instead of an operator or the end"),
            ("a = b", "`=` compares nothing; write `==`"),
            ("min()", "found `)` at character 5 instead of"),
            ("a ? b", "found `?` at character 3, which no formula has"),
            ("a < b < c", "comparisons in a row; write `a < b and b < c`"),
            ("1e999", "`1e999` is not a number"),
            ("or", "found `or` at character 1"),
            (&"(".repeat(50), "is too long"),
            (&"1+".repeat(400), "is too long"),
        ] {
            let error = spelled(text).expect_err(text);
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }

    fn exprs() -> impl Strategy<Value = Expr> {
        let leaf = prop_oneof![
            prop_oneof![0.0..1e3_f64, 0.0..1e300, 0.0..1e-9].prop_map(Expr::Number),
            "[a-z]{4}_[a-z]{2}".prop_map(Expr::Name),
        ];
        leaf.prop_recursive(5, 40, 3, |inner| {
            let one = inner.clone().prop_map(Box::new);
            let binary = prop::sample::select(Binary::ALL.to_vec());
            let sign = prop::sample::select(vec![Unary::Minus, Unary::Not]);
            prop_oneof![
                (sign, one.clone()).prop_map(|(sign, x)| Expr::Unary(sign, x)),
                (binary, one.clone(), one).prop_map(|((_, b, _), x, y)| Expr::Binary(b, x, y)),
                ("[a-z]{4}", prop::collection::vec(inner, 1..4))
                    .prop_map(|(name, inner)| Expr::Call(name, inner)),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_a_tree_is_written_as_reads_as_the_same_tree(expr in exprs()) {
            prop_assert_eq!(Expr::read(&expr.to_string()), Ok(expr));
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in "(a|if|not |and|or|[0-9.eE+*/()<>=!, -]|\\PC){0,20}",
        ) {
            if let Ok(expr) = Expr::read(&text) {
                prop_assert_eq!(Expr::read(&expr.to_string()), Ok(expr));
            }
        }
    }
}
