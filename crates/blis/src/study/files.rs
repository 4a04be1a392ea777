//! Which files `blis study` is about: those that were named, or all that a folder holds.

use crate::args::lab::StudyArgs;
use crate::failure::Failure;
use blis_lab::study::{self, Form};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where studies are looked for if nothing is named.
const FOLDER: &str = "studies";

/// The files that `args` mean, in their order; those of a folder by name.
pub(super) fn named(args: &StudyArgs) -> Result<Vec<PathBuf>, Failure> {
    let default = [PathBuf::from(FOLDER)];
    let named: &[PathBuf] = if args.studies.is_empty() { &default } else { &args.studies };
    let mut files = Vec::new();
    for path in named {
        match (path.is_dir(), args.all) {
            (false, _) => files.push(path.clone()),
            (true, true) => files.extend(of_folder(path)?),
            (true, false) => {
                let path = path.display();
                let message =
                    format!("{path}: this is a folder; add `--all` to run all studies in it");
                return Err(Failure::Input(message));
            }
        }
    }
    refuse_twins(&files)?;
    Ok(files)
}

/// The YAML files of a folder, by name.
pub(crate) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::Io(format!("cannot read the folder `{}`: {error}", folder.display()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        if is_yaml && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The studies and searches of a folder, by name; other files in it are left alone.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in yaml_files(folder)? {
        if matches!(study::form(&path)?, Form::Study | Form::Search) {
            files.push(path);
        }
    }
    if files.is_empty() {
        let message = format!("{}: no study found; name another folder", folder.display());
        return Err(Failure::Input(message));
    }
    Ok(files)
}

/// Pages and the ledger know a study by the name of its file, so there may be only one of each.
fn refuse_twins(files: &[PathBuf]) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    for file in files {
        let name = super::name(file);
        if !known.insert(name.clone()) {
            let message = format!(
                "{}: there are two studies named `{name}`; rename one, or run them separately",
                file.display()
            );
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

/// Names the command that runs what is no study; a file that is nothing is told about when it is
/// read.
pub(super) fn refuse_other(file: &Path, form: Form) -> Result<(), Failure> {
    let (what, command) = match form {
        Form::Study | Form::Other => return Ok(()),
        Form::Search => ("a search", "optimize"),
        Form::Evolution => ("an evolution", "evolve"),
    };
    let file = file.display();
    Err(Failure::Input(format!("{file}: this is {what}; run `blis {command} {file}`")))
}
