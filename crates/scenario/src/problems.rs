//! All that is wrong with an input: results of independent checks put together, so that a reader
//! learns of every mistake at once.

use crate::problem::{Place, Problem};
use std::fmt;

/// All that is wrong with an input, by file, line and column; at least one problem, and none that
/// follows from another. Shown one a line.
///
/// Only while an input is being read it can be empty: a check whose input is already known to be
/// broken fails without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The failure of a check that has nothing to add to what is known already.
    pub const KNOWN: Problems = Problems(Vec::new());

    /// Each problem.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// The same problems, each changed by `change`.
    #[must_use]
    pub fn map(self, change: impl FnMut(Problem) -> Problem) -> Problems {
        self.into_iter().map(change).collect()
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Problems {
        Problems(problems.into_iter().collect())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// More problems than these are not looked for.
const MOST: usize = 100;

/// Problems as they are found.
#[derive(Debug, Default)]
pub struct Findings {
    problems: Vec<Problem>,
    failed: bool,
}

impl Findings {
    /// The value of a check, if it succeeded; its problems are kept.
    pub fn keep<T>(&mut self, result: Result<T, impl Into<Problems>>) -> Option<T> {
        let found = match result {
            Ok(value) => return Some(value),
            Err(found) => found.into(),
        };
        self.failed = true;
        for problem in found {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        None
    }

    /// Whether there are so many problems that nobody would read more.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= MOST
    }

    /// `value`, if nothing failed.
    ///
    /// # Errors
    /// All problems that were kept.
    pub fn done<T>(self, value: T) -> Result<T, Problems> {
        if self.failed { Err(self.into()) } else { Ok(value) }
    }
}

impl From<Findings> for Problems {
    fn from(mut found: Findings) -> Problems {
        // Flags first, then files line by line, then files as a whole.
        let key = |problem: &Problem| match &problem.place {
            Place::Flag(_) => (0, None),
            Place::File { file, line, column } => (1, Some((file.clone(), *line, *column))),
            Place::Unknown => (2, None),
        };
        found.problems.sort_by_cached_key(key);
        Problems(found.problems)
    }
}

/// The values of all `results`.
///
/// # Errors
/// The problems of all that failed.
pub fn every<T, E: Into<Problems>>(
    results: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, Problems> {
    let mut found = Findings::default();
    let values = results.into_iter().filter_map(|result| found.keep(result)).collect();
    found.done(values)
}

/// What `check` makes of the value of `result`. Without a value there is nothing to check.
///
/// # Errors
/// What `check` finds; nothing to add if `result` failed.
pub fn given<T, U, E>(
    result: &Result<T, E>,
    check: impl FnOnce(&T) -> Result<U, Problems>,
) -> Result<U, Problems> {
    check(result.as_ref().map_err(|_| Problems::KNOWN)?)
}

/// Results of checks that do not depend on one another.
pub trait Together {
    /// Their values.
    type Values;

    /// All values.
    ///
    /// # Errors
    /// The problems of all that failed.
    fn together(self) -> Result<Self::Values, Problems>;
}

macro_rules! together {
    ($($name:ident $value:ident $error:ident),*) => {
        impl<$($value, $error: Into<Problems>),*> Together for ($(Result<$value, $error>,)*) {
            type Values = ($($value,)*);

            fn together(self) -> Result<Self::Values, Problems> {
                let mut found = Findings::default();
                let ($($name,)*) = self;
                match ($(found.keep($name),)*) {
                    ($(Some($name),)*) => Ok(($($name,)*)),
                    _ => Err(found.into()),
                }
            }
        }
    };
}

together!(a A AE, b B BE);
together!(a A AE, b B BE, c C CE);
together!(a A AE, b B BE, c C CE, d D DE);
together!(a A AE, b B BE, c C CE, d D DE, e E EE);
together!(a A AE, b B BE, c C CE, d D DE, e E EE, f F FE);
together!(a A AE, b B BE, c C CE, d D DE, e E EE, f F FE, g G GE, h H HE);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64) -> Problem {
        Problem::new(Place::File { file: "a".into(), line, column: 1 }, "", "wrong")
    }

    #[test]
    fn problems_are_told_once_each_in_the_order_of_the_file_and_flags_first() {
        let flag = Problem::new(Place::Flag("--x".into()), "", "wrong");
        let whole = Problem::of_file("b", "unreadable");
        let results = [whole, at(20), at(3), flag, at(20)].map(Err::<(), _>);
        let told = every(results).expect_err("all of them failed").to_string();
        assert_eq!(told, "--x: wrong\na:3:1: wrong\na:20:1: wrong\nb: unreadable");
    }

    #[test]
    fn what_fails_without_a_word_fails_all_the_same() {
        let good: Result<i32, Problem> = Ok(1);
        let known: Result<i32, Problems> = Err(Problems::KNOWN);
        assert_eq!((good.clone(), known).together(), Err(Problems::KNOWN));
        assert_eq!((good.clone(), good).together(), Ok((1, 1)));
    }
}
