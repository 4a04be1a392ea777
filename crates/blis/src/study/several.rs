//! Several studies in one go: one ledger, one bar, all verdicts in one table, and a page for each.
//!
//! Searches of `blis optimize` are run along with them: they have no verdicts, but a page and a
//! line.

use super::{files, found, name, part, settled};
use crate::args::lab::StudyArgs;
use crate::failure::{self, Failure};
use crate::output::{self, Output};
use crate::progress::Trials;
use crate::shard::Shard;
use crate::sheet::Sheet;
use crate::show::{self, MARK};
use crate::target::Target;
use crate::trials::Trying;
use blis_lab::optimize;
use blis_lab::study::{self, Form};
use blis_lab::verdict::Outcome;
use blis_report::html::{self, Figures};
use blis_report::studies::{Done, csv, document};
use blis_report::{Block, Document, markdown, search};
use blis_scenario::problems::{Together, every};
use blis_scenario::scenario::Checked;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// The page of a folder that leads to its other pages.
const INDEX: &str = "index";
/// In the folder of results: for people, for comparing, and what somebody wrote about all of them.
const RESULTS: [&str; 3] = ["README.md", "results.csv", "synthesis.md"];

/// A file that is run.
struct Job {
    file: PathBuf,
    work: Work,
}

enum Work {
    Study(Box<study::Outline>),
    Search(Box<optimize::Outline>),
}

/// Runs all of `files`. Everything is read and checked before anything runs.
pub(super) fn run(args: &StudyArgs, files: &[PathBuf]) -> Result<u8, Failure> {
    refuse_single_outputs(args)?;
    let shard = args.shard.as_deref().map(Shard::parse).transpose()?;
    let jobs: Vec<Job> = files.iter().map(|file| Job::read(file)).collect::<Result<_, _>>()?;
    let results = args.results.as_deref().map(|folder| results(folder, args.verify)).transpose()?;
    let mut site = args.site.as_deref().map(|folder| pages(folder, &jobs)).transpose()?;
    let trying = Trying::new(&args.trials)?;
    let watch = Trials::new(jobs.iter().map(Job::trials).sum(), args.shown.quiet);
    if let Some(shard) = shard {
        return parts(shard, &jobs, &trying, &watch);
    }
    // One study has few saturations to measure at a time; all of them have many.
    let cells = jobs.iter().flat_map(Job::cells).cloned().collect();
    trying.runner(&watch).settle_all(cells).map_err(|failure| trying.kept(failure))?;
    let count = jobs.len();
    let mut done = Vec::new();
    for (number, job) in jobs.into_iter().enumerate() {
        watch.turn_to(&name(&job.file));
        // While its arms are tuned, nobody knows how they stand; those of the last study are over.
        watch.compare(None);
        let (one, page) = job.run(&trying, &watch)?;
        if let Some(pages) = &mut site {
            write_page(pages.pop_front(), &page)?;
        }
        if !args.shown.quiet {
            watch.tell(&format!("{}/{count} {}: {}", number + 1, one.name, one.told()));
        }
        done.push(one);
    }
    drop(watch);
    if let Some(pages) = &mut site {
        write_page(pages.pop_front(), &document(&done, Some("{name}.html")))?;
    }
    let all = document(&done, None);
    let differences = match results {
        Some(sheets) => put(sheets, args, &all, &done)?,
        None => Vec::new(),
    };
    show::print(&all, args.shown.format)?;
    let refuted = done.iter().flat_map(Done::outcomes).any(|outcome| outcome == Outcome::Refuted);
    let failed = !differences.is_empty() || (args.check && refuted);
    Ok(if failed { failure::CHECK_FAILED } else { failure::DONE })
}

/// What takes one study cannot be said for several.
fn refuse_single_outputs(args: &StudyArgs) -> Result<(), Failure> {
    let given = [("--csv", args.csv.is_some()), ("--plot", args.plot.is_some())];
    let given = given.into_iter().chain([("--report", !args.shown.report.is_empty())]);
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Input(format!(
            "{flag}: it takes one study; use `--site FOLDER` for a page per study"
        ))),
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let failed = |error| {
        Failure::Io(format!("cannot write pages to the folder `{}`: {error}", path.display()))
    };
    fs::create_dir_all(path).map_err(failed)
}

/// Claims the pages of a site: one for each job, and then the index.
fn pages(folder: &Path, jobs: &[Job]) -> Result<VecDeque<Target>, Failure> {
    make_folder(folder)?;
    let names = jobs.iter().map(|job| name(&job.file)).chain([INDEX.to_owned()]);
    let claim = |name: String| Target::claim("--site", &folder.join(format!("{name}.html")));
    Ok(every(names.map(claim))?.into())
}

/// Opens the files of results.
fn results(folder: &Path, verify: bool) -> Result<[Sheet; 2], Failure> {
    if !verify {
        make_folder(folder)?;
    }
    let open = |name| Sheet::open("--results", &folder.join(name), verify);
    let (page, rows) = (open(RESULTS[0]), open(RESULTS[1])).together()?;
    Ok([page, rows])
}

/// Writes the results, or tells in what those that are there differ.
fn put(
    [page, rows]: [Sheet; 2],
    args: &StudyArgs,
    all: &Document,
    done: &[Done],
) -> Result<Vec<String>, Failure> {
    let mut all = all.clone();
    let has_synthesis = args.results.as_ref().is_some_and(|it| it.join(RESULTS[2]).is_file());
    let synthesis = format!("\nWhat follows from all of them: [synthesis]({}).\n", RESULTS[2]);
    let synthesis = if has_synthesis { synthesis } else { String::new() };
    let text = format!("Written by\n\n```sh\n{}\n```\n{synthesis}", command(args));
    all.blocks.insert(1, Block::Markdown(text));
    let page = page.put(&format!("{MARK}{}", markdown::page(&all, None).text))?;
    let differences: Vec<String> = page.into_iter().chain(rows.put(&csv(done))?).collect();
    for difference in &differences {
        output::note(difference);
    }
    if !differences.is_empty() {
        output::note("out of date: run the same command without `--verify`");
    }
    Ok(differences)
}

fn write_page(target: Option<Target>, page: &Document) -> Result<(), Failure> {
    let target = target.expect("there is one for each job and one for the index");
    Output::whole(&target, &html::page(page, Figures::Drawn))
}

/// The command that writes the results.
fn command(args: &StudyArgs) -> String {
    let mut words = vec!["blis study".to_owned()];
    words.extend(args.studies.iter().map(|path| path.display().to_string()));
    words.extend(args.all.then(|| "--all".to_owned()));
    words.extend(args.results.as_ref().map(|folder| format!("--results {}", folder.display())));
    words.join(" ")
}

/// Runs a part of every study. A search goes step by step, so it has no parts.
fn parts(shard: Shard, jobs: &[Job], trying: &Trying, watch: &Trials) -> Result<u8, Failure> {
    let mut told = Vec::new();
    for job in jobs {
        let name = name(&job.file);
        watch.turn_to(&name);
        match &job.work {
            Work::Study(outline) => {
                let study = settled(outline.as_ref().clone(), trying, watch, true)?;
                told.push(format!("{name}: {}", part(shard, &name, &study, trying, watch)?));
            }
            Work::Search(_) => {
                told.push(format!("{name}: a search cannot be sharded; skipped\n"));
            }
        }
    }
    output::print(&told.concat())?;
    Ok(failure::DONE)
}

impl Job {
    fn read(file: &Path) -> Result<Job, Failure> {
        let work = match study::form(file)? {
            Form::Search => Work::Search(Box::new(optimize::read(file)?)),
            // What is nothing says what is missing when it is read as a study.
            form => {
                files::refuse_other(file, form)?;
                Work::Study(Box::new(study::read(file)?))
            }
        };
        if name(file) == INDEX {
            let message =
                format!("{}: its page would overwrite the index; rename it", file.display());
            return Err(Failure::Input(message));
        }
        Ok(Job { file: file.to_owned(), work })
    }

    /// The scenarios of a study.
    fn cells(&self) -> &[Checked] {
        match &self.work {
            Work::Study(outline) => outline.cells(),
            Work::Search(_) => &[],
        }
    }

    fn trials(&self) -> u64 {
        match &self.work {
            Work::Study(outline) => outline.study().trials() as u64,
            Work::Search(outline) => outline.search().trials(false) as u64,
        }
    }

    /// Runs it. The value is what became of it, and its page.
    fn run(self, trying: &Trying, watch: &Trials) -> Result<(Done, Document), Failure> {
        let name = name(&self.file);
        let file = self.file.display().to_string();
        match self.work {
            Work::Study(outline) => {
                let study = settled(*outline, trying, watch, true)?;
                let findings = found(&name, &study, trying, watch)?;
                let page = blis_report::study::document(&study, &findings, Some(&file));
                let done = Done::of_study(&name, &study, &findings, page.data.clone());
                Ok((done, page))
            }
            Work::Search(outline) => {
                let settled = outline.settle(&trying.runner(watch));
                let search = settled.map_err(|failure| trying.kept(failure))?;
                let found = search.run(&trying.runner(watch), false);
                let findings = found.map_err(|failure| trying.kept(failure))?;
                let page = search::document(&search, &findings, Some(&file));
                let done = Done {
                    name,
                    question: search.question.clone(),
                    judged: Vec::new(),
                    gist: search::gist(&search, &findings),
                    data: page.data.clone(),
                };
                Ok((done, page))
            }
        }
    }
}
