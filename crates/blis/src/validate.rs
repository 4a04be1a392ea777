//! `blis validate`: predictions against measured runs.

mod html;
mod json;
mod markdown;
mod plot;
mod table;

use crate::args::{TextFormat, ValidateArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::report::json as report_json;
use crate::target::Target;
use crate::{calibrate, interrupt};
use blis_lab::measured::Measured;
use blis_lab::profile;
use blis_lab::replay::Server;
use blis_lab::validate::{
    Basis, Compared, Coverage, Options, Transfer, coverage, transfer, validate as compare,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the measured runs are that ship with the project.
const SHIPPED: &str = "data/h200";

/// Single steps beside measured runs.
const GRID: &str = "steps_grid.csv";

/// What a comparison found, and how it was made.
struct Found {
    compared: Vec<Compared>,
    coverage: Coverage,
    /// Fits to single workloads; empty if that makes no sense.
    transfer: Vec<Transfer>,
    /// Which profile predicted, in words.
    basis: String,
}

/// Compares what `args` name.
pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let (folders, wanted) = named(args);
    let measured = read(&folders, &wanted)?;
    let beside = folders.iter().map(|folder| folder.join(GRID)).find(|path| path.is_file());
    let grid = args.grid.clone().or(beside);
    let options = options(args)?;
    let runs = blis_lab::calibrate::runs(&measured, grid.as_deref(), args.block_size)?;
    let page = args.markdown.as_deref().map(Target::of).transpose()?;
    let report = args.report.as_deref().map(Target::of).transpose()?;
    let notes = args.notes.as_deref().map(read_notes).transpose()?;
    interrupt::listen();
    let compared = compare(&measured, &runs, &wanted, &options)?;
    let several = compared.len() > 1 && !matches!(options.basis, Basis::Given(_));
    let transfer = if several { transfer(&measured, &runs, &options)? } else { Vec::new() };
    let coverage = coverage(&compared);
    let found = Found { coverage, transfer, basis: basis(args), compared };
    if let Some(page) = &page {
        write_page(&found, page, notes.as_deref())?;
    }
    if let Some(report) = &report {
        write(report, &html::page(&found))?;
    }
    output::print(&match args.format {
        TextFormat::Table => table::text(&found),
        TextFormat::Json => report_json::text(&json::object(&found)),
    })
}

fn basis(args: &ValidateArgs) -> String {
    match (&args.profile, args.refit) {
        (Some(path), _) => format!("predicted by the profile `{}`", path.display()),
        (None, true) => "predicted by a fit to all runs, these included".to_owned(),
        (None, false) => "each predicted by a fit to all other workloads".to_owned(),
    }
}

fn options(args: &ValidateArgs) -> Result<Options, Failure> {
    let basis = match (&args.profile, args.refit) {
        (Some(path), _) => Basis::Given(Box::new(profile::read(path)?)),
        (None, true) => Basis::Refit,
        (None, false) => Basis::LeaveOneOut,
    };
    let padding = blis_lab::calibrate::padding(&args.padding)
        .map_err(|message| Failure::Input(format!("--padding: {message}")))?;
    let server = Server {
        block_size: args.block_size,
        total_kv_blocks: args.total_kv_blocks,
        max_num_running_reqs: args.max_num_running_reqs,
        max_num_scheduled_tokens: args.max_num_scheduled_tokens,
        reserve_full_prompt: args.reserve_full_prompt,
    };
    let (resamples, seed, jobs) = (args.resamples, args.seed, args.jobs.into());
    Ok(Options { basis, server, padding, resamples, seed, jobs })
}

/// The folders with measured runs, and the workloads to predict.
fn named(args: &ValidateArgs) -> (Vec<PathBuf>, Vec<String>) {
    let is_folder = |name: &&String| Path::new(name).is_dir();
    let folders: Vec<PathBuf> = args.what.iter().filter(is_folder).map(PathBuf::from).collect();
    let wanted: Vec<String> = args.what.iter().filter(|name| !is_folder(name)).cloned().collect();
    let folders = match &args.data {
        Some(data) => [data.clone()].into_iter().chain(folders).collect(),
        None if folders.is_empty() => vec![PathBuf::from(SHIPPED)],
        None => folders,
    };
    (folders, wanted)
}

/// All runs of `folders`; refuses workloads that are not among them.
fn read(folders: &[PathBuf], wanted: &[String]) -> Result<Vec<Measured>, Failure> {
    let measured = calibrate::read(folders, &[])?;
    let known: Vec<&str> = measured.iter().map(|run| run.workload.as_str()).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        let mut names = known.clone();
        names.dedup();
        let hint = blis_lab::problem::hint(unknown, names.iter().copied());
        let names = blis_lab::problem::quoted(&names);
        return Err(Failure::Input(format!(
            "no measured workload `{unknown}`{hint}; legal: a folder, or one of {names}"
        )));
    }
    Ok(measured)
}

fn read_notes(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        let problem = blis_lab::Problem::unreadable(&path.display().to_string(), &error);
        Failure::from(problem)
    })
}

/// Writes the page to `target` and its plots beside it.
fn write_page(found: &Found, target: &Target, notes: Option<&str>) -> Result<(), Failure> {
    for compared in &found.compared {
        let path = target.given.with_file_name(markdown::plot_name(&compared.workload));
        write(&Target::of(&path)?, &plot::svg(compared))?;
    }
    write(target, &markdown::page(found, notes))
}

fn write(target: &Target, text: &str) -> Result<(), Failure> {
    let mut file = Output::create(target)?;
    file.write_all(text.as_bytes()).map_err(|error| file.failure(&error))?;
    file.finish()
}
