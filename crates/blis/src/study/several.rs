//! Several studies in one go: one ledger, one bar, a page for each, and all verdicts in one table.
//!
//! Searches of `blis optimize` are run along with them: they have no verdicts, but a page and a
//! line.

use super::index::{self, Folder, Link};
use super::sheets::Sheets;
use super::{end, found, json, markdown, name, part, settled, verdicts};
use crate::args::TextFormat;
use crate::args::lab::StudyArgs;
use crate::failure::{self, Failure};
use crate::optimize as searches;
use crate::output;
use crate::progress::{Bar, Trials};
use crate::report::json::text;
use crate::shard::Shard;
use crate::sheet::Fate;
use crate::trials::Trying;
use blis_lab::optimize::{self, Search};
use blis_lab::study::{self, Findings, Form, Study};
use blis_lab::verdict::Outcome;
use blis_scenario::json::Fields;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file that is run.
struct Job {
    file: PathBuf,
    work: Work,
    sheets: Option<Sheets>,
}

enum Work {
    Study(Box<study::Outline>),
    Search(Box<optimize::Outline>),
}

/// What became of a file.
pub(super) struct Done {
    /// The name of the file.
    pub(super) name: String,
    /// What it asks.
    pub(super) question: String,
    /// What was found.
    pub(super) outcomes: Outcomes,
    object: Value,
}

/// What was found.
pub(super) enum Outcomes {
    /// By a study: what is said about each of its hypotheses.
    Study(Vec<Judged>),
    /// By a search, in a few words.
    Search(String),
}

/// What is said about a hypothesis.
pub(super) struct Judged {
    /// Its name.
    pub(super) hypothesis: String,
    /// The verdict.
    pub(super) outcome: Outcome,
    /// The effect that it hangs on.
    pub(super) effect: String,
}

impl Done {
    /// The verdicts.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        match &self.outcomes {
            Outcomes::Study(verdicts) => verdicts.iter().map(|verdict| verdict.outcome).collect(),
            Outcomes::Search(_) => Vec::new(),
        }
    }

    /// What to tell while others are still running.
    fn line(&self) -> String {
        match &self.outcomes {
            Outcomes::Study(_) => verdicts::tally(&self.outcomes()),
            Outcomes::Search(gist) => gist.clone(),
        }
    }
}

/// Runs all of `files`. Everything is read and every page is opened before anything runs.
pub(super) fn run(args: &StudyArgs, files: &[PathBuf]) -> Result<u8, Failure> {
    refuse_single_outputs(args)?;
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let folder = args.markdown.as_deref();
    let folder = folder.map(|path| Folder::open(path, Fate::of(args.verify))).transpose()?;
    let jobs: Vec<Job> =
        files.iter().map(|file| Job::read(file, folder.as_ref())).collect::<Result<_, _>>()?;
    let index = folder.as_ref().filter(|_| args.all).map(Folder::index).transpose()?;
    let bar = if args.quiet { Bar::Hidden } else { Bar::OnTerminals };
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(jobs.iter().map(Job::trials).sum(), bar);
    if let Some(shard) = shard {
        return parts(shard, &jobs, &trying, &watch);
    }
    let count = jobs.len();
    let (mut done, mut differences) = (Vec::new(), Vec::new());
    for (number, job) in jobs.into_iter().enumerate() {
        watch.turn_to(&name(&job.file));
        let (one, different) = job.run(&trying, &watch)?;
        if !args.quiet {
            watch.tell(&format!("{}/{count} {}: {}", number + 1, one.name, one.line()));
        }
        done.push(one);
        differences.extend(different);
    }
    drop(watch);
    if let (Some(index), Some(folder)) = (index, &folder) {
        differences.extend(index.put(&index::text(
            &done,
            &command(args),
            folder.has_synthesis(),
        ))?);
        let names = done.iter().map(|one| one.name.clone()).collect();
        differences.extend(folder.judge(folder.left_over(&names)));
    }
    let refuted = done.iter().flat_map(Done::outcomes).any(|outcome| outcome == Outcome::Refuted);
    output::print(&match args.format {
        TextFormat::Table => table(&done),
        TextFormat::Json => text(&done.into_iter().map(|one| one.object).collect()),
    })?;
    Ok(end(args, refuted, &differences))
}

/// What takes one study cannot be said for several.
fn refuse_single_outputs(args: &StudyArgs) -> Result<(), Failure> {
    let given = [("--csv", &args.csv), ("--plot", &args.plot), ("--report", &args.report)];
    match given.iter().find(|(_, path)| path.is_some()) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Input(format!(
            "{flag}: it takes one study; `--markdown FOLDER` writes a page for each"
        ))),
    }
}

/// The command that writes all pages.
fn command(args: &StudyArgs) -> String {
    let given = args.studies.iter().map(|path| path.display().to_string());
    let paths: Vec<String> = given.collect();
    let paths = if paths.is_empty() { "studies".to_owned() } else { paths.join(" ") };
    let folder = args.markdown.as_deref().unwrap_or(Path::new("")).display();
    format!("blis study {paths} --all --markdown {folder}")
}

fn table(done: &[Done]) -> String {
    let outcomes: Vec<Outcome> = done.iter().flat_map(Done::outcomes).collect();
    let (tally, count) = (verdicts::tally(&outcomes), done.len());
    format!("{}\n{count} files: {tally}\n", index::summary(done, Link::None).text())
}

/// Runs a part of every study. A search goes step by step, so it has no parts.
fn parts(shard: Shard, jobs: &[Job], trying: &Trying, watch: &Trials) -> Result<u8, Failure> {
    let mut told = Vec::new();
    for job in jobs {
        let name = name(&job.file);
        watch.turn_to(&name);
        match &job.work {
            Work::Study(outline) => {
                let study = settled(outline.as_ref().clone(), trying, watch)?;
                told.push(format!("{name}: {}", part(shard, &name, &study, trying, watch)?));
            }
            Work::Search(_) => {
                told.push(format!("{name}: a search goes step by step; it is left out\n"));
            }
        }
    }
    output::print(&told.concat())?;
    Ok(failure::DONE)
}

impl Job {
    fn read(file: &Path, folder: Option<&Folder>) -> Result<Job, Failure> {
        let work = match study::form(file)? {
            Form::Search => Work::Search(Box::new(optimize::read(file)?)),
            // What is neither says what is missing when it is read as a study.
            Form::Study | Form::Other => Work::Study(Box::new(study::read(file)?)),
        };
        let sheets = folder.map(|folder| folder.page(file)).transpose()?;
        Ok(Job { file: file.to_owned(), work, sheets })
    }

    fn trials(&self) -> u64 {
        match &self.work {
            Work::Study(outline) => outline.study().trials() as u64,
            Work::Search(outline) => outline.search().trials(false) as u64,
        }
    }

    /// Runs it, and writes its page; also says in what pages that are there differ.
    fn run(self, trying: &Trying, watch: &Trials) -> Result<(Done, Vec<String>), Failure> {
        let name = name(&self.file);
        match self.work {
            Work::Study(outline) => {
                let study = settled(*outline, trying, watch)?;
                let findings = found(&name, &study, trying, watch)?;
                let put = |sheets: Sheets| sheets.put_study(&study, &findings);
                let differences = self.sheets.map(put).transpose()?.unwrap_or_default();
                Ok((Done::of_study(name, &study, &findings), differences))
            }
            Work::Search(outline) => {
                let settled = outline.settle(&trying.runner(), watch);
                let search = settled.map_err(|failure| trying.kept(failure))?;
                let found = search.run(&trying.runner(), watch, false);
                let findings = found.map_err(|failure| trying.kept(failure))?;
                let put = |sheets: Sheets| {
                    let page = of_search(&search, &findings, &sheets);
                    sheets.put(&page, || searches::drawing(&search, &findings))
                };
                let differences = self.sheets.map(put).transpose()?.unwrap_or_default();
                let outcomes = Outcomes::Search(searches::gist(&search, &findings));
                let object = searches::object(&search, &findings);
                let question = search.question.clone();
                Ok((Done { object: named(&name, object), name, question, outcomes }, differences))
            }
        }
    }
}

/// The page of a search.
fn of_search(search: &Search, findings: &optimize::Findings, sheets: &Sheets) -> String {
    let head = markdown::head(&search.question, &sheets.links);
    let drawing = markdown::shown(&searches::heading(&search.objectives[0].number), &sheets.links);
    let discussion = markdown::discussed(search.discussion.as_deref());
    let body = searches::markdown(search, findings);
    let tail = markdown::tail("optimize", &sheets.links);
    format!("{head}{drawing}{discussion}\n{body}{tail}")
}

impl Done {
    fn of_study(name: String, study: &Study, findings: &Findings) -> Done {
        let judged = study.hypotheses.iter().zip(&findings.verdicts).map(|(asked, found)| Judged {
            hypothesis: asked.name.clone(),
            outcome: found.outcome,
            effect: verdicts::effect(found),
        });
        Done {
            object: named(&name, json::object(study, findings)),
            question: study.question.clone(),
            outcomes: Outcomes::Study(judged.collect()),
            name,
        }
    }
}

/// An object among others needs the name of its file.
fn named(name: &str, object: Value) -> Value {
    let mut fields = Fields::default();
    fields.text("name", name.to_owned());
    fields.value("found", object);
    fields.into_value()
}
