//! Parameters of policies: declared once, checked everywhere.
//!
//! A policy declares its parameters as a `&'static [Param]`. From that come the check of scenario
//! files, the help, the generated reference and the optimiser's search space. `Values` is the
//! checked result.

use std::fmt;
use std::ops::RangeInclusive;

/// A text of a declaration.
type Text = &'static str;

/// Checks an expression.
pub type ReadFormula = fn(&str) -> Result<String, String>;

/// One parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Spelling in files and flags: lower case, hyphens.
    pub name: &'static str,
    /// Kind, legal range and default.
    pub kind: ParamKind,
    /// Unit for help texts, e.g. "tokens/s"; empty if there is none.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// When it is read; `None`: always.
    pub when: Option<When>,
}

/// The setting of another parameter under which a parameter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The other parameter, of the same policy.
    pub param: &'static str,
    /// What it must be, any of these, as they are written.
    pub is: &'static [&'static str],
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is `{}`", self.param, self.is.join("` or `"))
    }
}

impl Param {
    const fn new(name: &'static str, kind: ParamKind, unit: &'static str) -> Param {
        Param { name, kind, unit, help: "", when: None }
    }

    /// A number.
    pub const fn float(name: Text, legal: RangeInclusive<f64>, default: f64, unit: Text) -> Param {
        let (min, max) = (*legal.start(), *legal.end());
        Param::new(name, ParamKind::Float { min, max, default }, unit)
    }

    /// A number best searched on a logarithmic scale.
    pub const fn log(name: Text, legal: RangeInclusive<f64>, default: f64, unit: Text) -> Param {
        let (min, max) = (*legal.start(), *legal.end());
        Param::new(name, ParamKind::Log { min, max, default }, unit)
    }

    /// A whole number.
    pub const fn int(name: Text, legal: RangeInclusive<u64>, default: u64, unit: Text) -> Param {
        let (min, max) = (*legal.start(), *legal.end());
        Param::new(name, ParamKind::Int { min, max, default }, unit)
    }

    /// A whole number, or the word `auto`, which is the default.
    pub const fn int_or_auto(name: Text, legal: RangeInclusive<u64>, unit: Text) -> Param {
        let (min, max) = (*legal.start(), *legal.end());
        Param::new(name, ParamKind::IntOrAuto { min, max }, unit)
    }

    /// `true` or `false`.
    pub const fn flag(name: &'static str, default: bool) -> Param {
        Param::new(name, ParamKind::Flag { default }, "")
    }

    /// One of a few words; the first is the default.
    pub const fn choice(name: &'static str, options: &'static [&'static str]) -> Param {
        Param::new(name, ParamKind::Choice { options }, "")
    }

    /// An expression that `read` checks: it answers with the one spelling of what it has read, or
    /// with what is wrong.
    pub const fn formula(name: Text, read: ReadFormula, default: Text) -> Param {
        Param::new(name, ParamKind::Formula { read, default }, "")
    }

    /// The same parameter with its one sentence of help.
    #[must_use]
    pub const fn help(self, help: &'static str) -> Param {
        Param { help, ..self }
    }

    /// `text` as a legal value.
    fn read(&self, text: &str) -> Result<Value, ParamError> {
        let name = self.name;
        if let ParamKind::Formula { read, .. } = self.kind {
            let wrong = |problem| ParamError::Formula { name, problem };
            return read(text).map(Value::Word).map_err(wrong);
        }
        let (found, legal) = (text.to_owned(), self.kind.legal());
        self.kind.parse(text).ok_or(ParamError::Illegal { name, found, legal })
    }

    /// The same parameter, read only if `param` is any of `is`.
    #[must_use]
    pub const fn only_if(self, param: &'static str, is: &'static [&'static str]) -> Param {
        Param { when: Some(When { param, is }), ..self }
    }
}

/// Kind, legal range (inclusive) and default of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A number.
    Float {
        /// Least legal value.
        min: f64,
        /// Greatest legal value.
        max: f64,
        /// Value when not given.
        default: f64,
    },
    /// A number best searched on a logarithmic scale.
    Log {
        /// Least legal value, above 0.
        min: f64,
        /// Greatest legal value.
        max: f64,
        /// Value when not given.
        default: f64,
    },
    /// A whole number.
    Int {
        /// Least legal value.
        min: u64,
        /// Greatest legal value.
        max: u64,
        /// Value when not given.
        default: u64,
    },
    /// A whole number, or the word `auto`, which is the default.
    IntOrAuto {
        /// Least legal value.
        min: u64,
        /// Greatest legal value.
        max: u64,
    },
    /// `true` or `false`.
    Flag {
        /// Value when not given.
        default: bool,
    },
    /// One of a few words; the first is the default.
    Choice {
        /// The legal words.
        options: &'static [&'static str],
    },
    /// An expression.
    Formula {
        /// Checks one.
        read: ReadFormula,
        /// The expression when none is given.
        default: &'static str,
    },
}

/// Two formulas of equal defaults are of one kind: addresses of functions mean nothing.
impl PartialEq for ParamKind {
    fn eq(&self, other: &ParamKind) -> bool {
        self.default_value() == other.default_value() && self.legal() == other.legal()
    }
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Float(f64),
    /// A whole number.
    Int(u64),
    /// `true` or `false`.
    Flag(bool),
    /// A word, including `auto`, or an expression.
    Word(String),
}

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamError {
    /// The policy has no parameter of this name.
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The value is of the wrong kind or out of range.
    Illegal {
        /// The parameter.
        name: &'static str,
        /// The value found.
        found: String,
        /// What is legal.
        legal: String,
    },
    /// The formula has a mistake.
    Formula {
        /// The parameter.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Given, but not read under this setting of another parameter.
    Unread {
        /// The parameter.
        name: &'static str,
        /// When it is read.
        when: When,
        /// What the other parameter is.
        found: String,
    },
    /// The parameter was given twice.
    Twice {
        /// The parameter.
        name: &'static str,
    },
}

/// Checked values of all parameters of a policy, in the order of their declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    params: &'static [Param],
    settings: Vec<Value>,
    given: Vec<bool>,
}

impl ParamKind {
    /// The value when none is given.
    pub fn default_value(&self) -> Value {
        match *self {
            ParamKind::Float { default, .. } | ParamKind::Log { default, .. } => {
                Value::Float(default)
            }
            ParamKind::Int { default, .. } => Value::Int(default),
            ParamKind::IntOrAuto { .. } => Value::Word("auto".to_owned()),
            ParamKind::Flag { default } => Value::Flag(default),
            ParamKind::Choice { options } => Value::Word(options[0].to_owned()),
            ParamKind::Formula { default, .. } => Value::Word(default.to_owned()),
        }
    }

    /// What is legal, in words.
    pub fn legal(&self) -> String {
        match *self {
            ParamKind::Float { min, max, .. } | ParamKind::Log { min, max, .. } => {
                format!("a number from {min} to {max}")
            }
            ParamKind::Int { min, max, .. } => format!("a whole number from {min} to {max}"),
            ParamKind::IntOrAuto { min, max } => {
                format!("`auto` or a whole number from {min} to {max}")
            }
            ParamKind::Flag { .. } => "`true` or `false`".to_owned(),
            ParamKind::Choice { options } => format!("one of `{}`", options.join("`, `")),
            ParamKind::Formula { .. } => "a formula".to_owned(),
        }
    }

    /// `text` as a legal value.
    pub fn parse(&self, text: &str) -> Option<Value> {
        match *self {
            ParamKind::Float { min, max, .. } | ParamKind::Log { min, max, .. } => {
                let x: f64 = text.parse().ok()?;
                (x >= min && x <= max).then_some(Value::Float(x))
            }
            ParamKind::IntOrAuto { .. } if text == "auto" => Some(Value::Word(text.to_owned())),
            ParamKind::Int { min, max, .. } | ParamKind::IntOrAuto { min, max } => {
                let n: u64 = text.parse().ok()?;
                (min..=max).contains(&n).then_some(Value::Int(n))
            }
            ParamKind::Flag { .. } => text.parse().ok().map(Value::Flag),
            ParamKind::Choice { options } => {
                options.contains(&text).then(|| Value::Word(text.to_owned()))
            }
            ParamKind::Formula { read, .. } => read(text).ok().map(Value::Word),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Float(x) => write!(f, "{x}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Flag(b) => write!(f, "{b}"),
            Value::Word(word) => f.write_str(word),
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Unknown { name, known } if known.is_empty() => {
                write!(f, "unknown parameter `{name}`: this policy has none")
            }
            ParamError::Unknown { name, known } => {
                write!(f, "unknown parameter `{name}`; known: `{}`", known.join("`, `"))
            }
            ParamError::Illegal { name, found, legal } => {
                write!(f, "`{name}` is `{found}`; legal: {legal}")
            }
            ParamError::Formula { name, problem } => write!(f, "`{name}`: {problem}"),
            ParamError::Twice { name } => write!(f, "`{name}` is given twice"),
            ParamError::Unread { name, when, found } => write!(
                f,
                "`{name}` is given, but it is read only if {when}, and that is `{found}`; give \
                 `{}={}`, or remove it",
                when.param, when.is[0]
            ),
        }
    }
}

impl std::error::Error for ParamError {}

impl Values {
    /// The defaults of `params`.
    pub fn defaults(params: &'static [Param]) -> Values {
        Values {
            params,
            settings: params.iter().map(|param| param.kind.default_value()).collect(),
            given: vec![false; params.len()],
        }
    }

    /// The defaults of `params`, changed by the `(name, text)` pairs of `given`.
    ///
    /// # Errors
    /// If a name is unknown or given twice, or a text is no legal value.
    pub fn parse<'a>(
        params: &'static [Param],
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Values, ParamError> {
        let mut values = Values::defaults(params);
        for (name, text) in given {
            let index = params.iter().position(|param| param.name == name).ok_or_else(|| {
                ParamError::Unknown {
                    name: name.to_owned(),
                    known: params.iter().map(|param| param.name).collect(),
                }
            })?;
            let param = &params[index];
            if values.given[index] {
                return Err(ParamError::Twice { name: param.name });
            }
            values.settings[index] = param.read(text)?;
            values.given[index] = true;
        }
        values.check_read()?;
        Ok(values)
    }

    /// A value that nothing reads would look as if it changed nothing.
    fn check_read(&self) -> Result<(), ParamError> {
        let given = self.params.iter().zip(&self.given).filter(|(_, given)| **given);
        for (param, _) in given.filter(|(param, _)| !self.reads(param)) {
            if let Some(when) = param.when {
                let found = self.get(when.param).to_string();
                return Err(ParamError::Unread { name: param.name, when, found });
            }
        }
        Ok(())
    }

    /// Whether `param` is read, given what the others are.
    ///
    /// # Panics
    /// If it depends on a parameter that is not declared.
    pub fn reads(&self, param: &Param) -> bool {
        param.when.is_none_or(|when| when.is.contains(&self.get(when.param).to_string().as_str()))
    }

    /// A `Float`, `Log` or `Int` parameter as a number.
    ///
    /// # Panics
    /// If the policy did not declare such a parameter: a mistake in the policy's own file.
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Float(x) => *x,
            Value::Int(n) => crate::math::float(*n),
            other => panic!("parameter `{name}` is not a number but {other:?}"),
        }
    }

    /// An `Int` parameter.
    ///
    /// # Panics
    /// If the policy did not declare such a parameter: a mistake in the policy's own file.
    pub fn int(&self, name: &str) -> u64 {
        self.int_or_auto(name).unwrap_or_else(|| panic!("parameter `{name}` is not a whole number"))
    }

    /// An `IntOrAuto` parameter; `None` is `auto`.
    ///
    /// # Panics
    /// If the policy did not declare such a parameter: a mistake in the policy's own file.
    pub fn int_or_auto(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Value::Int(n) => Some(*n),
            Value::Word(word) if word == "auto" => None,
            other => panic!("parameter `{name}` is not a whole number but {other:?}"),
        }
    }

    /// A `Flag` parameter.
    ///
    /// # Panics
    /// If the policy did not declare such a parameter: a mistake in the policy's own file.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(b) => *b,
            other => panic!("parameter `{name}` is not a flag but {other:?}"),
        }
    }

    /// A `Choice` parameter, or the text of a `Formula`.
    ///
    /// # Panics
    /// If the policy did not declare such a parameter: a mistake in the policy's own file.
    pub fn choice(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Word(word) => word,
            other => panic!("parameter `{name}` is not a choice but {other:?}"),
        }
    }

    /// All parameters with their values, in the order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Param, &Value)> {
        self.params.iter().zip(&self.settings)
    }

    fn get(&self, name: &str) -> &Value {
        let index = self.params.iter().position(|param| param.name == name);
        &self.settings[index.unwrap_or_else(|| panic!("parameter `{name}` is not declared"))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param::float("capacity", 1.0..=1e9, 10_000.0, "tokens").help("size of the bucket"),
        Param::int_or_auto("lru", 1..=99, ""),
        Param::choice("ties", &["random", "lowest-index"]),
        Param::int("seed", 0..=9, 0, "").only_if("ties", &["random"]),
    ];

    #[test]
    fn a_value_that_nothing_reads_is_refused_with_the_setting_that_would() {
        let parse =
            |given: &[(&'static str, &'static str)]| Values::parse(PARAMS, given.iter().copied());
        assert!(parse(&[("seed", "3")]).is_ok_and(|values| values.int("seed") == 3));
        let unread = parse(&[("seed", "0"), ("ties", "lowest-index")]);
        assert_eq!(
            unread.expect_err("nothing reads it").to_string(),
            "`seed` is given, but it is read only if `ties` is `random`, and that is \
             `lowest-index`; give `ties=random`, or remove it"
        );
        let values = parse(&[("ties", "lowest-index")]).expect("legal");
        let read = |name| PARAMS.iter().filter(|p| p.name == name).all(|p| values.reads(p));
        assert!(read("lru") && !read("seed"));
    }

    #[test]
    fn defaults_hold_until_a_value_is_given() {
        let values = Values::parse(PARAMS, [("lru", "7")]).expect("legal");
        assert!((values.float("capacity") - 10_000.0).abs() < 1e-12);
        assert_eq!(values.int_or_auto("lru"), Some(7));
        assert_eq!(values.choice("ties"), "random");
        assert_eq!(Values::defaults(PARAMS).int_or_auto("lru"), None);
    }

    #[test]
    fn unknown_illegal_and_repeated_parameters_are_refused() {
        let refuse = |given: &[(&'static str, &'static str)]| {
            Values::parse(PARAMS, given.iter().copied()).expect_err("must be refused").to_string()
        };
        assert!(refuse(&[("capacty", "1")]).contains("known: `capacity`"));
        for bad in ["0", "-1", "NaN", "inf", "1e308", "", "1_000", "0x10"] {
            assert!(refuse(&[("capacity", bad)]).contains("from 1 to 1000000000"), "{bad}");
        }
        assert!(refuse(&[("lru", "0")]).contains("`auto` or a whole number from 1 to 99"));
        assert!(refuse(&[("ties", "first")]).contains("one of `random`, `lowest-index`"));
        assert!(refuse(&[("lru", "1"), ("lru", "2")]).contains("given twice"));
    }
}
