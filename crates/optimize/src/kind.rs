//! What one dimension can be, and where its values stand between 0 and 1.

use blis_core::Value;
use blis_core::math::{count, exp, float, ln};

/// What a dimension can be; ranges are inclusive.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number.
    Float {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A number on a logarithmic scale.
    Log {
        /// Least value, above 0.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// A whole number.
    Int {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// One of a few values without order.
    Choice {
        /// The values, each once.
        options: Vec<Value>,
    },
}

impl Kind {
    /// Number of distinct values; `None` if there are more than can be told apart.
    pub fn levels(&self) -> Option<u64> {
        match self {
            Kind::Float { min, max } | Kind::Log { min, max } => (min >= max).then_some(1),
            Kind::Int { min, max } => Some(max - min + 1),
            Kind::Choice { options } => Some(options.len() as u64),
        }
    }

    /// The coordinates of all its values.
    ///
    /// # Panics
    /// If there are more values than can be told apart.
    pub(crate) fn coordinates(&self) -> Vec<f64> {
        let of = |value: Value| self.unit(&value).expect("a kind has its own values");
        match self {
            Kind::Int { min, max } => (*min..=*max).map(|n| of(Value::Int(n))).collect(),
            Kind::Choice { options } => options.iter().cloned().map(of).collect(),
            Kind::Float { min, .. } | Kind::Log { min, .. } => {
                assert_eq!(self.levels(), Some(1), "numbers without steps cannot be listed");
                vec![of(Value::Float(*min))]
            }
        }
    }

    /// Whether it is one of a few values without order.
    pub fn is_choice(&self) -> bool {
        matches!(self, Kind::Choice { .. })
    }

    /// What is legal, in words.
    pub(crate) fn legal(&self) -> String {
        match self {
            Kind::Float { min, max } | Kind::Log { min, max } => {
                format!("a number from {min} to {max}")
            }
            Kind::Int { min, max } => {
                format!("a whole number from {min} to {max}")
            }
            Kind::Choice { options } => {
                let words: Vec<String> = options.iter().map(ToString::to_string).collect();
                format!("one of `{}`", words.join("`, `"))
            }
        }
    }

    /// What is wrong with the range or the options.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let problem = match self {
            Kind::Float { min, max } if !(min.is_finite() && max.is_finite() && min <= max) => {
                "it needs two finite numbers, the least first"
            }
            Kind::Log { min, max } if !(*min > 0.0 && max.is_finite() && min <= max) => {
                "a logarithmic range begins above 0 and ends at a finite number"
            }
            Kind::Int { min, max } if min > max || *max >= 1 << 52 => {
                "it needs two whole numbers below 2^52, the least first"
            }
            Kind::Choice { options } if options.is_empty() => "it needs an option",
            Kind::Choice { options }
                if options.iter().enumerate().any(|(i, option)| options[..i].contains(option)) =>
            {
                "an option is there twice"
            }
            _ => return Ok(()),
        };
        Err(problem)
    }

    /// The value at the coordinate `u` of 0..=1.
    pub(crate) fn value(&self, u: f64) -> Value {
        let u = u.clamp(0.0, 1.0);
        match self {
            Kind::Float { min, max } => Value::Float((min + u * (max - min)).clamp(*min, *max)),
            Kind::Log { min, max } => {
                Value::Float(exp(ln(*min) + u * (ln(*max) - ln(*min))).clamp(*min, *max))
            }
            Kind::Int { min, max } => {
                let cells = float(max - min + 1);
                Value::Int((min + count((u * cells).floor())).min(*max))
            }
            Kind::Choice { options } => options[option_at(u, options.len())].clone(),
        }
    }

    /// The coordinate of `value`; `None` if the dimension cannot have it.
    pub(crate) fn unit(&self, value: &Value) -> Option<f64> {
        match (self, value) {
            (Kind::Float { min, max }, Value::Float(x)) => {
                (x >= min && x <= max).then(|| ratio(x - min, max - min))
            }
            (Kind::Log { min, max }, Value::Float(x)) => {
                (x >= min && x <= max).then(|| ratio(ln(*x) - ln(*min), ln(*max) - ln(*min)))
            }
            (Kind::Int { min, max }, Value::Int(n)) => {
                (min..=max).contains(&n).then(|| (float(n - min) + 0.5) / float(max - min + 1))
            }
            (Kind::Choice { options }, value) => {
                let index = options.iter().position(|option| option == value)?;
                Some(middle_of(index, options.len()))
            }
            _ => None,
        }
    }
}

/// The option whose cell holds `u`.
pub(crate) fn option_at(u: f64, options: usize) -> usize {
    let cell = count((u.clamp(0.0, 1.0) * float(options as u64)).floor());
    usize::try_from(cell).expect("options are few").min(options.saturating_sub(1))
}

/// The coordinate in the middle of cell `index` of `cells`.
pub(crate) fn middle_of(index: usize, cells: usize) -> f64 {
    (float(index as u64) + 0.5) / float(cells as u64)
}

/// Share of a range; a range without width is its own middle.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.5 }
}
