//! Reading claims: by recursive descent over the text, with units checked on the way.
//!
//! Nothing but names is looked up here: a study is asked for its design, never for its runs.

use super::claim::{
    Claim, Comparison, Expr, Op, Reference, Relation, Suffix, is_patched, is_plain,
};
use crate::design::Design;
use blis_scenario::problem::{hint, quoted};
use std::ops::Range;

/// The longest claim, in bytes.
const LONGEST: usize = 2_000;
/// The deepest nesting of parentheses.
const DEEPEST: usize = 32;
/// The most of the classes, arms and so on that a complaint lists.
const LISTED: usize = 12;

/// What is legal behind a parenthesis that is not closed.
const UNQUOTED: &str = "`)`; between `{` and `}` a comma ends a claim, so put all of it in quotes";

/// What is wrong with a claim, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
    /// What is wrong, and what is legal.
    pub message: String,
}

/// The claim in `text`, about the cells of `design`.
///
/// # Errors
/// The first mistake in it.
pub fn parse(text: &str, design: &Design) -> Result<Claim, Mistake> {
    let mut reader = Reader::new(text, design)?;
    let mut parts = vec![reader.comparison()?];
    while reader.keyword("and") {
        parts.push(reader.comparison()?);
    }
    reader.end("`and`, an operator or the end")?;
    Ok(Claim { parts })
}

/// One number of runs, e.g. a counter, in `text`.
///
/// # Errors
/// The first mistake in it.
pub fn parse_value(text: &str, design: &Design) -> Result<Expr, Mistake> {
    let mut reader = Reader::new(text, design)?;
    let found = reader.sum(0)?;
    reader.end("an operator or the end")?;
    if found.expr.is_fixed() {
        return Err(reader.about_nothing(found.at));
    }
    Ok(found.expr)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    design: &'a Design,
}

/// A part of the text and what it means.
struct Found {
    expr: Expr,
    unit: Unit,
    at: Range<usize>,
}

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A bare number: whatever the other side counts.
    Any,
    /// Milliseconds, things a second, or (`""`) things and shares.
    Of(&'static str),
}

type Result<T, E = Mistake> = std::result::Result<T, E>;

impl<'a> Reader<'a> {
    fn new(text: &'a str, design: &'a Design) -> Result<Reader<'a>> {
        if text.len() > LONGEST {
            let message = format!("{} bytes long; legal: at most {LONGEST}", text.len());
            return Err(Mistake { at: 0..0, message });
        }
        Ok(Reader { text, at: 0, design })
    }

    fn comparison(&mut self) -> Result<Comparison> {
        let left = self.sum(0)?;
        let sign = self.relation()?;
        let right = self.sum(0)?;
        let whole = left.at.start..right.at.end;
        if !fit(left.unit, right.unit) {
            let message = format!(
                "compares {} with {}; legal: the same on both sides",
                left.unit.name(),
                right.unit.name()
            );
            return Err(Mistake { at: whole, message });
        }
        let relation = match sign {
            Relation::About(_) => Relation::About(self.tolerance()?),
            ordered => ordered,
        };
        match (left.expr.is_fixed(), right.expr.is_fixed()) {
            (true, true) => return Err(self.about_nothing(whole)),
            (true, false) => {
                let Some(relation) = relation.mirrored() else {
                    let message = "a number on the left; write it on the right of `~`".to_owned();
                    return Err(Mistake { at: left.at, message });
                };
                return Ok(Comparison { left: right.expr, relation, right: left.expr });
            }
            (false, true)
                if matches!(relation, Relation::About(_))
                    && right.expr.constant().is_none_or(|number| number <= 0.0) =>
            {
                let message = "nothing is within a percentage of 0; legal: a number above 0";
                return Err(Mistake { at: right.at, message: message.to_owned() });
            }
            _ => {}
        }
        Ok(Comparison { left: left.expr, relation, right: right.expr })
    }

    /// The text at `at` is the same whatever is run.
    fn about_nothing(&self, at: Range<usize>) -> Mistake {
        let message =
            format!("`{}` compares no metric; name one, e.g. `ttft_p99`", &self.text[at.clone()]);
        Mistake { at, message }
    }

    /// A sign; how near `~` means stands behind the right side.
    fn relation(&mut self) -> Result<Relation> {
        use Relation::{About, Above, AtLeast, AtMost, Below};
        for relation in [AtMost, AtLeast, Below, Above, About(0.0)] {
            if self.take(relation.sign()) {
                return Ok(relation);
            }
        }
        Err(self.unexpected("a comparison: `<`, `<=`, `>`, `>=` or `~ ... within 5%`"))
    }

    fn tolerance(&mut self) -> Result<f64> {
        if !self.keyword("within") {
            return Err(self.unexpected("`within` and a percentage, e.g. `within 5%`"));
        }
        self.space();
        let start = self.at;
        let number = self.number()?;
        let at = start..self.at;
        match number {
            Some((value, Suffix::Percent)) if value > 0.0 && value < 100.0 => Ok(value / 100.0),
            _ => Err(Mistake { at, message: "legal: a percentage, e.g. `within 5%`".to_owned() }),
        }
    }

    fn sum(&mut self, depth: usize) -> Result<Found> {
        self.chain([Op::Plus, Op::Minus], |reader| {
            reader.chain([Op::Times, Op::Over], |reader| reader.factor(depth))
        })
    }

    /// One or more of `part` with operators of one rank between them.
    fn chain(&mut self, ops: [Op; 2], part: impl Fn(&mut Self) -> Result<Found>) -> Result<Found> {
        let mut left = part(self)?;
        while let Some(op) = ops.into_iter().find(|op| self.take(op.text())) {
            left = joined(left, op, part(self)?)?;
        }
        Ok(left)
    }

    fn factor(&mut self, depth: usize) -> Result<Found> {
        self.space();
        let start = self.at;
        if self.take("(") {
            if depth >= DEEPEST {
                let message = format!("nested deeper than {DEEPEST} parentheses");
                return Err(Mistake { at: start..self.at, message });
            }
            let inner = self.sum(depth + 1)?;
            if !self.take(")") {
                return Err(self.unexpected("an operator or `)`"));
            }
            return Ok(Found { at: start..self.at, ..inner });
        }
        if let Some((value, suffix)) = self.number()? {
            let unit = match suffix {
                Suffix::None => Unit::Any,
                Suffix::Percent => Unit::Of(""),
                Suffix::Ms | Suffix::Seconds => Unit::Of("ms"),
            };
            return Ok(Found { expr: Expr::Number(value, suffix), unit, at: start..self.at });
        }
        self.value()
    }

    /// A number, if there is one here.
    fn number(&mut self) -> Result<Option<(f64, Suffix)>> {
        self.space();
        let rest = &self.text[self.at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if digits == 0 {
            return Ok(None);
        }
        let mut length = digits;
        // An exponent: `e`, perhaps a sign, digits.
        if let Some(exponent) = rest[digits..].strip_prefix(['e', 'E']) {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
            if end > 0 {
                length = rest.len() - unsigned.len() + end;
            }
        }
        let text = &rest[..length];
        let at = self.at..self.at + length;
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
        let Some(value) = value else {
            return Err(Mistake { at, message: format!("`{text}` is no number") });
        };
        self.at += length;
        self.suffix(at.start).map(|suffix| Some((value, suffix)))
    }

    /// What stands behind the number that begins at `start`.
    fn suffix(&mut self, start: usize) -> Result<Suffix> {
        let behind = self.at;
        if self.take("%") {
            return Ok(Suffix::Percent);
        }
        let (end, word) = self.word();
        let suffix = match word {
            "" | "and" | "within" => {
                self.at = behind;
                return Ok(Suffix::None);
            }
            "ms" => Suffix::Ms,
            "s" => Suffix::Seconds,
            _ => {
                let message = format!("unknown unit `{word}`; known: `%`, `ms`, `s`");
                return Err(Mistake { at: start..end, message });
            }
        };
        self.at = end;
        Ok(suffix)
    }

    fn value(&mut self) -> Result<Found> {
        let (end, word) = self.word();
        let start = end - word.len();
        if word.is_empty() {
            return Err(self.unexpected("a number or a metric, e.g. `ttft_p99(full)`"));
        }
        let metric =
            self.design.metric(word).map_err(|message| Mistake { at: start..end, message })?;
        self.at = end;
        let mut levels = vec![None; self.design.factors.len()];
        if self.text[self.at..].starts_with('(') {
            self.at += 1;
            self.place(&mut levels)?;
        }
        let unit = Unit::Of(metric.unit());
        let expr = Expr::Value(Reference { metric, levels });
        Ok(Found { expr, unit, at: start..self.at })
    }

    /// What stands between the parentheses behind a metric, and the closing one.
    fn place(&mut self, levels: &mut [Option<usize>]) -> Result<()> {
        loop {
            if !self.next_is("@") {
                let (name, at) = self.name("an arm")?;
                if self.take("=") {
                    let factor = self.swept(&name, at)?;
                    let (level, at) = self.name("a value of it")?;
                    self.set(levels, factor, &level, at)?;
                } else {
                    let factor = self.patched("arm", at.clone())?;
                    self.set(levels, factor, &name, at)?;
                }
            }
            if self.take("@") {
                let (name, at) = self.name("a workload")?;
                let factor = self.patched("workload", at.clone())?;
                self.set(levels, factor, &name, at)?;
            }
            if self.take(")") {
                return Ok(());
            }
            if !self.take(",") {
                let is_cut = self.at == self.text.len();
                let legal = if is_cut { UNQUOTED } else { "`@ workload`, `,` or `)`" };
                return Err(self.unexpected(legal));
            }
        }
    }

    fn set(
        &self,
        levels: &mut [Option<usize>],
        factor: usize,
        name: &str,
        at: Range<usize>,
    ) -> Result<()> {
        let known = &self.design.factors[factor];
        let what = known.name.rsplit('.').next().unwrap_or_default();
        let level = known.levels.iter().position(|level| level == name).ok_or_else(|| Mistake {
            at: at.clone(),
            message: unknown(what, name, &known.levels, known.stated),
        })?;
        if levels[factor].replace(level).is_some() {
            return Err(Mistake { at, message: format!("names the {what} twice") });
        }
        Ok(())
    }

    /// The factor of arms or of workloads.
    fn patched(&self, name: &str, at: Range<usize>) -> Result<usize> {
        self.design.factor(name).ok_or_else(|| {
            let message = format!("the study has no {name}s; remove it, or add `{name}s:`");
            Mistake { at, message }
        })
    }

    /// The swept field called `name`, by its whole path or by the last step of it.
    fn swept(&self, name: &str, at: Range<usize>) -> Result<usize> {
        let factors = self.design.factors.iter().enumerate();
        let swept = factors.filter(|(_, factor)| !is_patched(&factor.name));
        let is = |path: &str| path == name || path.rsplit('.').next() == Some(name);
        let found: Vec<usize> =
            swept.clone().filter(|(_, factor)| is(&factor.name)).map(|(index, _)| index).collect();
        match found[..] {
            [index] => Ok(index),
            [] => {
                let names: Vec<String> = swept.map(|(_, factor)| factor.name.clone()).collect();
                Err(Mistake { at, message: unknown("swept field", name, &names, names.len()) })
            }
            _ => {
                let message =
                    format!("`{name}` is the end of several fields; write the whole path");
                Err(Mistake { at, message })
            }
        }
    }

    /// A name, quoted or not.
    fn name(&mut self, what: &str) -> Result<(String, Range<usize>)> {
        self.space();
        let start = self.at;
        let rest = &self.text[start..];
        if let Some(inner) = rest.strip_prefix('"') {
            let Some(end) = inner.find('"') else {
                let message = "the quote is not closed".to_owned();
                return Err(Mistake { at: start..self.text.len(), message });
            };
            self.at = start + end + 2;
            return Ok((inner[..end].to_owned(), start..self.at));
        }
        let length = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let name = rest[..length].trim_end();
        if name.is_empty() {
            return Err(self.unexpected(what));
        }
        if rest[length..].starts_with('%') {
            let whole = rest.split([',', ')', '@']).next().unwrap_or(rest).trim_end();
            let message = format!("`{whole}` needs quotes here; write `\"{whole}\"`");
            return Err(Mistake { at: start..start + whole.len(), message });
        }
        self.at = start + name.len();
        Ok((name.to_owned(), start..self.at))
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn next_is(&mut self, text: &str) -> bool {
        self.space();
        self.text[self.at..].starts_with(text)
    }

    /// Whether `text` stands here; then it is passed.
    fn take(&mut self, text: &str) -> bool {
        let found = self.next_is(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// The word that stands here and where it ends.
    fn word(&mut self) -> (usize, &'a str) {
        self.space();
        let rest = &self.text[self.at..];
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        (self.at + length, &rest[..length])
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let (end, word) = self.word();
        if word == keyword {
            self.at = end;
        }
        word == keyword
    }

    fn end(&mut self, otherwise: &str) -> Result<()> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.unexpected(otherwise)) }
    }

    /// What stands here is not what should.
    fn unexpected(&mut self, legal: &str) -> Mistake {
        let (end, word) = self.word();
        let rest = &self.text[self.at..];
        let (found, end) = match (word, rest.chars().next()) {
            ("", None) => ("the end".to_owned(), self.at),
            ("", Some(c)) => (format!("`{c}`"), self.at + c.len_utf8()),
            (word, _) => (format!("`{word}`"), end),
        };
        Mistake { at: self.at..end, message: format!("found {found}; legal: {legal}") }
    }
}

fn joined(left: Found, op: Op, right: Found) -> Result<Found> {
    let at = left.at.start..right.at.end;
    let unit = match (left.unit, op, right.unit) {
        (Unit::Any, Op::Plus | Op::Minus, unit)
        | (unit, Op::Plus | Op::Minus, Unit::Any)
        | (Unit::Any | Unit::Of(""), Op::Times, unit)
        | (unit, Op::Times | Op::Over, Unit::Any | Unit::Of("")) => Some(unit),
        (left, Op::Over, right) if left == right => Some(Unit::Of("")),
        (left, Op::Plus | Op::Minus, right) if left == right => Some(left),
        _ => None,
    };
    let Some(unit) = unit else {
        let message = format!(
            "{} {} {} is not defined; legal: sums and ratios of the same kind, products with \
             numbers",
            left.unit.name(),
            op.text(),
            right.unit.name()
        );
        return Err(Mistake { at, message });
    };
    if let (Op::Over, Some(divisor)) = (op, right.expr.constant())
        && divisor.total_cmp(&0.0).is_eq()
    {
        return Err(Mistake { at: right.at, message: "divides by zero".to_owned() });
    }
    Ok(Found { expr: Expr::Binary(Box::new(left.expr), op, Box::new(right.expr)), unit, at })
}

fn fit(left: Unit, right: Unit) -> bool {
    left == right || left == Unit::Any || right == Unit::Any
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Any => "a number",
            Unit::Of("ms") => "milliseconds",
            Unit::Of("") => "a count or share",
            Unit::Of(_) => "a rate",
        }
    }
}

/// That there is no `what` called `name`, and which are known; of these the first ones, which are
/// `stated` in the file, are listed.
pub(crate) fn unknown(what: &str, name: &str, known: &[String], stated: usize) -> String {
    let hint = hint(name, known.iter().map(String::as_str));
    let listed = stated.min(LISTED);
    let more = if known.len() > listed { ", ..." } else { "" };
    let known = quoted(&known[..listed]);
    format!("unknown {what} `{name}`{hint}; known: {known}{more}")
}

#[cfg(test)]
mod tests;
