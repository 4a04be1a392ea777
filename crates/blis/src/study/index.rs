//! The pages of several studies: their folder, and the page that leads to all of them.

use super::markdown::{MARK, inline, paragraph};
use super::several::{Done, Outcomes};
use super::sheets::{Drawing, Sheets};
use super::verdicts::tally;
use crate::failure::Failure;
use crate::markup::push;
use crate::output;
use crate::report::grid::Grid;
use crate::sheet::{Fate, Sheet};
use blis_lab::verdict::Outcome;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The page that leads to all others: what people see who open the folder.
const INDEX: &str = "README.md";

/// A page in the same folder that somebody wrote: what follows from all studies.
const SYNTHESIS: &str = "synthesis.md";

/// A folder of pages.
pub(super) struct Folder {
    path: PathBuf,
    fate: Fate,
}

impl Folder {
    /// The folder `path`, made if it is not there.
    pub(super) fn open(path: &Path, fate: Fate) -> Result<Folder, Failure> {
        let failed = |what: &dyn std::fmt::Display| {
            Failure::Io(format!("cannot write pages to `{}`: {what}", path.display()))
        };
        if path.exists() && !path.is_dir() {
            return Err(failed(&"it is a file; several studies need a folder"));
        }
        if fate == Fate::Written {
            fs::create_dir_all(path).map_err(|error| failed(&error))?;
        }
        Ok(Folder { path: path.to_owned(), fate })
    }

    /// Opens the page of the study `file`.
    pub(super) fn page(&self, file: &Path) -> Result<Sheets, Failure> {
        let name = super::name(file) + ".md";
        if name == INDEX {
            let message = format!("{}: its page would be the index; rename it", file.display());
            return Err(Failure::Input(message));
        }
        Sheets::open(&self.path.join(name), file, Drawing::Beside, self.fate)
    }

    /// Opens the index.
    pub(super) fn index(&self) -> Result<Sheet, Failure> {
        Sheet::open(&self.path.join(INDEX), self.fate, &[])
    }

    /// Whether somebody has written down what follows from all studies.
    pub(super) fn has_synthesis(&self) -> bool {
        self.path.join(SYNTHESIS).is_file()
    }

    /// Generated pages whose study is not among `names` any more. They are told about, and left for
    /// the user to remove.
    pub(super) fn left_over(&self, names: &BTreeSet<String>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let mut found: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
            .filter(|path| !path.ends_with(INDEX) && !names.contains(&super::name(path)))
            .filter(|path| fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK)))
            .map(|path| format!("{}: its study is gone; remove it", path.display()))
            .collect();
        found.sort();
        found
    }

    /// What to do about left-over pages: a failed check, or a note.
    pub(super) fn judge(&self, left_over: Vec<String>) -> Vec<String> {
        if self.fate == Fate::Verified {
            return left_over;
        }
        for page in &left_over {
            output::note(&format!("note: {page}"));
        }
        Vec::new()
    }
}

/// The text of the index. `command` writes all pages.
pub(super) fn text(done: &[Done], command: &str, has_synthesis: bool) -> String {
    let mut page = format!("{MARK}\n# Studies and their verdicts\n");
    let outcomes: Vec<Outcome> = done.iter().flat_map(Done::outcomes).collect();
    page.push_str(&paragraph(&format!(
        "{} files: {}. A claim that is refuted is a result like any other; what was changed after \
         a look at the results, its discussion says. Each page has the claim, the mechanism behind \
         it, what was found with its interval, the setup, a drawing and all numbers. All of them \
         are written by",
        done.len(),
        tally(&outcomes)
    )));
    push(
        &mut page,
        format_args!("\n```sh\n{command}\n```\n\nand compared by the same with `--verify`."),
    );
    if has_synthesis {
        push(&mut page, format_args!("\nWhat follows from all of them: [synthesis]({SYNTHESIS})."));
    }
    let rows = done.iter().map(|one| {
        let Done { name, question, .. } = one;
        let found = match &one.outcomes {
            Outcomes::Study(_) => tally(&one.outcomes()),
            Outcomes::Search(gist) => gist.clone(),
        };
        vec![format!("[{name}]({name}.md)"), inline(question), found]
    });
    let grid = Grid {
        title: String::new(),
        header: ["study", "question", "found"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    };
    push(&mut page, format_args!("\n{}", grid.markdown_of_words().trim_end()));
    page.push_str("\n## All claims\n\nThe effect is the one that the verdict hangs on, with its interval; `x` is a ratio.\n");
    push(&mut page, format_args!("\n{}", summary(done, Link::Page).markdown_of_words().trim_end()));
    page
}

/// Whether a table leads to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// It does.
    Page,
    /// It is for a terminal.
    None,
}

/// All verdicts: one row a hypothesis.
pub(super) fn summary(done: &[Done], link: Link) -> Grid {
    let mut rows = Vec::new();
    for one in done {
        let name = match link {
            Link::Page => format!("[{0}]({0}.md)", one.name),
            Link::None => one.name.clone(),
        };
        match &one.outcomes {
            Outcomes::Study(verdicts) => {
                for verdict in verdicts {
                    let (hypothesis, outcome) = (&verdict.hypothesis, verdict.outcome.name());
                    let effect = verdict.effect.clone();
                    rows.push(vec![name.clone(), hypothesis.clone(), outcome.to_owned(), effect]);
                }
            }
            Outcomes::Search(gist) => {
                rows.push(vec![name, "(search)".to_owned(), String::new(), gist.clone()]);
            }
        }
    }
    let header = ["study", "hypothesis", "verdict", "effect"].map(str::to_owned).to_vec();
    Grid { title: String::new(), header, rows }
}
