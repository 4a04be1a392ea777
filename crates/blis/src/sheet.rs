//! Files that are generated and kept: written, or with `--verify` compared with what is there.

use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file on its way.
#[derive(Debug)]
pub(crate) enum Sheet {
    /// It is written.
    Write(Output),
    /// It should be there as it is.
    Compare(PathBuf),
}

/// What becomes of generated files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They are written.
    Written,
    /// They are compared with those that are there, and nothing is written.
    Verified,
}

impl Fate {
    /// The fate that `--verify` means.
    pub(crate) fn of(verify: bool) -> Fate {
        if verify { Fate::Verified } else { Fate::Written }
    }
}

impl Sheet {
    /// The file `path`, opened before anything runs. It must be none of `inputs`.
    pub(crate) fn open(path: &Path, fate: Fate, inputs: &[&Path]) -> Result<Sheet, Failure> {
        if fate == Fate::Verified {
            return Ok(Sheet::Compare(path.to_owned()));
        }
        let target = Target::of(path)?;
        if let Some(input) = inputs.iter().find(|input| target.is_input(input)) {
            let (path, input) = (path.display(), input.display());
            let message = format!("`{path}` would be written over `{input}`; name another");
            return Err(Failure::Input(message));
        }
        Output::create(&target).map(Sheet::Write)
    }

    /// Writes `text`, or says in what the file that is there differs from it.
    pub(crate) fn put(self, text: &str) -> Result<Option<String>, Failure> {
        match self {
            Sheet::Write(mut output) => {
                output.write_all(text.as_bytes()).map_err(|error| output.failure(&error))?;
                output.finish().map(|()| None)
            }
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
            (None, None) => return Some("differs in how lines end".to_owned()),
            (old, new) if old == new => {}
            (Some(_), None) => return Some(format!("has more lines, from line {line} on")),
            (None, Some(_)) => return Some(format!("ends before line {line}")),
            (Some(old), Some(new)) => {
                return Some(format!("line {line} is\n    {old}\nand not\n    {new}"));
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
            ("a\nb\n", "a\nc\n", "line 2 is\n    b\nand not\n    c"),
            ("a\n", "a\nb\n", "ends before line 2"),
            ("a\nb\nc\n", "a\nb\n", "has more lines, from line 3 on"),
            ("a\r\n", "a\n", "differs in how lines end"),
        ] {
            assert_eq!(difference(found, wanted).as_deref(), Some(what));
        }
    }

    #[test]
    fn what_is_written_is_verified_and_what_is_missing_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("x.md");
        let put = |fate: Fate, text: &str| {
            Sheet::open(&path, fate, &[]).expect("it opens").put(text).expect("it can be read")
        };
        assert!(put(Fate::Verified, "a\n").expect("a difference").ends_with("is not there"));
        assert!(!path.exists(), "verifying writes nothing");
        assert_eq!(put(Fate::Written, "a\n"), None);
        assert_eq!(put(Fate::Verified, "a\n"), None);
        assert!(put(Fate::Verified, "b\n").is_some());
    }
}
