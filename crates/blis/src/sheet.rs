//! Files that are generated and kept: written, or with `--verify` compared with what is there.

use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_scenario::Problem;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file on its way.
#[derive(Debug)]
pub(crate) enum Sheet {
    /// It is written.
    Write(Output),
    /// It should be there as it is.
    Compare(PathBuf),
}

impl Sheet {
    /// The file `path`, which `flag` gives, opened before anything runs.
    pub(crate) fn open(flag: &str, path: &Path, verify: bool) -> Result<Sheet, Problem> {
        if verify {
            return Ok(Sheet::Compare(path.to_owned()));
        }
        Output::create(&Target::claim(flag, path)?).map(Sheet::Write)
    }

    /// Writes `text`, or says in what the file that is there differs from it.
    pub(crate) fn put(self, text: &str) -> Result<Option<String>, Failure> {
        match self {
            Sheet::Write(output) => output.fill(text).map(|()| None),
            Sheet::Compare(path) => match fs::read_to_string(&path) {
                Ok(found) => Ok(difference(&found, text).map(|what| told(&path, &what))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(Some(told(&path, "is not there")))
                }
                Err(error) => {
                    Err(Failure::Io(format!("cannot read `{}`: {error}", path.display())))
                }
            },
        }
    }
}

fn told(path: &Path, what: &str) -> String {
    format!("{}: {what}", path.display())
}

/// The first line in which `found` is not `wanted`.
fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let (mut old, mut new) = (found.lines(), wanted.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (old.next(), new.next()) {
            (None, None) => return Some("differs in line endings".to_owned()),
            (old, new) if old == new => {}
            (Some(_), None) => return Some(format!("has more lines, from line {line} on")),
            (None, Some(_)) => return Some(format!("ends before line {line}")),
            (Some(old), Some(new)) => {
                return Some(format!("line {line} is\n    {old}\nexpected\n    {new}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_line() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        for (found, wanted, what) in [
            ("a\nb\n", "a\nc\n", "line 2 is\n    b\nexpected\n    c"),
            ("a\n", "a\nb\n", "ends before line 2"),
            ("a\nb\nc\n", "a\nb\n", "has more lines, from line 3 on"),
            ("a\r\n", "a\n", "differs in line endings"),
        ] {
            assert_eq!(difference(found, wanted).as_deref(), Some(what));
        }
    }

    #[test]
    fn what_is_written_is_verified_and_what_is_missing_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.md");
        let put = |verify: bool, text: &str| {
            Sheet::open("--out", &path, verify)
                .expect("it opens")
                .put(text)
                .expect("it can be read")
        };
        assert!(put(true, "a\n").expect("a difference").ends_with("is not there"));
        assert!(!path.exists(), "verifying writes nothing");
        assert_eq!(put(false, "a\n"), None);
        assert_eq!(put(true, "a\n"), None);
        assert!(put(true, "b\n").is_some());
    }
}
