//! `blis validate`: predictions against measured runs.

use crate::args::ValidateArgs;
use crate::failure::Failure;
use crate::output;
use crate::show::Pages;
use blis_fidelity::measured::{self, Measured};
use blis_fidelity::public::{self, Published};
use blis_fidelity::replay::Server;
use blis_fidelity::validate::{
    Basis, Bounds, Options, beyond, coverage, transfer, validate as compare,
};
use blis_report::validate::{Found, document, outside};
use blis_scenario::profile;
use std::path::{Path, PathBuf};

/// The profile of vLLM that ships.
const VLLM: &str = "h200-vllm-0.26-llama-3.1-8b";

/// Where published measurements are.
const PUBLIC: &str = "data/public";

/// What is compared where nothing is named, in this order.
const PARTS: [Part; 4] = [
    Part {
        title: "vLLM 0.26 on an H200",
        data: &["data/vllm"],
        again: Some("data/vllm-again"),
        new: None,
        bounds: Bounds::SEEN,
    },
    Part {
        title: "vLLM 0.26 with its own defaults",
        data: &["data/vllm", "data/vllm-default"],
        again: None,
        new: None,
        bounds: Bounds::UNSEEN,
    },
    Part {
        title: "Runs that nothing was fitted to",
        data: &["data/vllm"],
        again: Some("data/vllm-again"),
        new: Some("data/vllm-held-out"),
        bounds: Bounds::UNSEEN,
    },
    Part {
        title: "The home-made server on an H200",
        data: &["data/h200"],
        again: None,
        new: None,
        bounds: Bounds::UNSEEN,
    },
];

/// Runs that ship with the project.
struct Part {
    title: &'static str,
    /// Where those are that may be fitted to; those of the last folder are predicted.
    data: &'static [&'static str],
    /// Where other runs of the same arrivals are: nothing is fitted to them.
    again: Option<&'static str>,
    /// Where those are that are only predicted, by `VLLM`.
    new: Option<&'static str>,
    bounds: Bounds,
}

/// A comparison whose files are read.
type Ready<'a> = Box<dyn FnOnce() -> Result<Found, Failure> + 'a>;

/// Compares what `args` name. Everything is read before the pages are opened: none of them may be a
/// file that was read.
pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    if args.public {
        return published(args);
    }
    let is_all = args.what.is_empty() && args.data.is_none();
    let ready = if is_all && args.profile.is_none() && !args.refit {
        PARTS.iter().map(|part| shipped(args, part)).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![one(args, &named(args), args.profile.as_deref())?]
    };
    let pages = Pages::open(&args.shown)?;
    let found = ready.into_iter().map(|ready| ready()).collect::<Result<Vec<_>, _>>()?;
    for compared in found.iter().flat_map(|part| &part.compared) {
        if compared.outside.steps > 0 && !args.shown.quiet {
            output::note(&format!("warning: {}: {}", compared.workload, outside(compared)));
        }
    }
    pages.put(&document(&found))
}

/// Replays what others have published.
fn published(args: &ValidateArgs) -> Result<(), Failure> {
    let mut files = Vec::new();
    let default = [PUBLIC.to_owned()];
    for named in if args.what.is_empty() { &default[..] } else { &args.what } {
        let path = Path::new(named);
        if path.is_dir() {
            files.extend(crate::study::yaml_files(path)?);
        } else {
            files.push(path.to_owned());
        }
    }
    let all = files.iter().map(|file| public::read(file)).collect::<Result<Vec<_>, _>>()?;
    let pages = Pages::open(&args.shown)?;
    let replayed = |published: Published| {
        let arms = published.replay()?;
        Ok((published, arms))
    };
    let all = all.into_iter().map(replayed).collect::<Result<Vec<_>, Failure>>()?;
    pages.put(&blis_report::public::document(&all))
}

fn shipped<'a>(args: &'a ValidateArgs, part: &'static Part) -> Result<Ready<'a>, Failure> {
    let folders: Vec<PathBuf> = part.data.iter().map(PathBuf::from).collect();
    let new: Vec<PathBuf> = part.new.iter().map(PathBuf::from).collect();
    let again: Vec<PathBuf> = part.again.iter().map(PathBuf::from).collect();
    let profile = part.new.map(|_| Path::new(VLLM));
    let last = folders.last().expect("a part has data");
    let names = if new.is_empty() { workloads(last)? } else { Vec::new() };
    let title =
        format!("{}: `{}`", part.title, part.new.map_or(last.as_path(), Path::new).display());
    let ready = one(args, &Named { folders, again, new, names }, profile)?;
    let bounds = part.bounds;
    Ok(Box::new(move || {
        let (transfer, beyond) = (Vec::new(), Vec::new());
        Ok(Found { title, bounds, transfer, beyond, ..ready()? })
    }))
}

/// What was served in the runs of a folder.
fn workloads(folder: &Path) -> Result<Vec<String>, Failure> {
    Ok(Measured::read_folder(folder)?.into_iter().map(|run| run.workload).collect())
}

/// Reads what is named, to compare it with what `profile` or fits predict.
fn one<'a>(
    args: &'a ValidateArgs,
    named: &Named,
    profile: Option<&Path>,
) -> Result<Ready<'a>, Failure> {
    let Read { measured, fitted, wanted } = read(named)?;
    let grids = measured::grids(&args.grid, &named.folders);
    let options = options(args, &measured, profile)?;
    let seen = if args.refit { &measured[..] } else { &measured[..fitted] };
    let runs = blis_fidelity::calibrate::runs(seen, &grids, args.block_size)?;
    let basis = basis(profile, args.refit);
    let other = named.new.is_empty() && !matches!(options.basis, Basis::Given(_));
    Ok(Box::new(move || {
        let compared = compare(&measured, &runs, &wanted, &options)?;
        let several = !args.what.is_empty() || args.data.is_some();
        let several = several && compared.len() > 1 && other;
        let transfer = if several { transfer(&measured, &runs, &options)? } else { Vec::new() };
        let beyond = if several { beyond(&runs, &options)? } else { Vec::new() };
        let (title, bounds, coverage) = (String::new(), Bounds::UNSEEN, coverage(&compared));
        Ok(Found { title, bounds, coverage, transfer, beyond, basis, compared })
    }))
}

fn basis(profile: Option<&Path>, refit: bool) -> String {
    match (profile, refit) {
        (Some(path), _) => format!("predicted by the profile `{}`", path.display()),
        (None, true) => "predicted by a fit to all runs, including these".to_owned(),
        (None, false) => "each predicted by a fit to all other workloads".to_owned(),
    }
}

fn options(
    args: &ValidateArgs,
    measured: &[Measured],
    profile: Option<&Path>,
) -> Result<Options, Failure> {
    let basis = match (profile, args.refit) {
        (Some(path), _) => Basis::Given(Box::new(match path.to_str().and_then(profile::named) {
            Some(shipped) => shipped,
            None => profile::read(path)?,
        })),
        (None, true) => Basis::Refit,
        (None, false) => Basis::LeaveOneOut,
    };
    let padding = blis_fidelity::calibrate::padding(args.padding.as_deref(), measured)
        .map_err(|message| Failure::Input(format!("--padding: {message}")))?;
    let server = Server {
        block_size: args.block_size,
        total_kv_blocks: args.total_kv_blocks,
        max_num_running_reqs: args.max_num_running_reqs,
        max_num_scheduled_tokens: args.max_num_scheduled_tokens,
        max_cudagraph_capture_size: args.max_cudagraph_capture_size,
        reserve_full_prompt: args.reserve_full_prompt,
    };
    let (resamples, seed, jobs) = (args.resamples, args.seed, args.jobs.into());
    Ok(Options { basis, server, padding, resamples, seed, jobs })
}

/// What the arguments name.
struct Named {
    /// Folders with runs that may be fitted to.
    folders: Vec<PathBuf>,
    /// Folders with other runs of the same arrivals.
    again: Vec<PathBuf>,
    /// Runs that are only predicted, by their files or folders.
    new: Vec<PathBuf>,
    /// Workloads to predict.
    names: Vec<String>,
}

fn named(args: &ValidateArgs) -> Named {
    let is_file = |name: &String| {
        let path = Path::new(name);
        path.extension().is_some_and(|ending| ending == "csv")
    };
    let (files, others): (Vec<String>, Vec<String>) = args.what.iter().cloned().partition(is_file);
    let (folders, names): (Vec<String>, Vec<String>) =
        others.into_iter().partition(|name| Path::new(name).is_dir());
    let paths = |names: Vec<String>| names.into_iter().map(PathBuf::from);
    let mut new: Vec<PathBuf> = paths(files).collect();
    let folders = match &args.data {
        Some(data) => {
            new.extend(paths(folders));
            vec![data.clone()]
        }
        None if folders.is_empty() => vec![PathBuf::from(PARTS[0].data[0])],
        None => paths(folders).collect(),
    };
    // A profile needs nothing to be fitted to.
    let folders = if args.profile.is_some() && !new.is_empty() { Vec::new() } else { folders };
    Named { folders, again: Vec::new(), new, names }
}

/// What was read.
struct Read {
    /// All runs that are named.
    measured: Vec<Measured>,
    /// So many of them, from the first, may be fitted to.
    fitted: usize,
    /// The workloads to predict; empty: all.
    wanted: Vec<String>,
}

/// Reads all runs that are named. New runs take the place of those of the same workload, and
/// nothing is fitted to them, not even to predict other new ones.
fn read(named: &Named) -> Result<Read, Failure> {
    let new = measured::read_all(&steps_of(&named.new), &[])?;
    let mut measured = measured::read_all(&named.folders, &[])?;
    let mut wanted: Vec<String> = new.iter().map(|run| run.workload.clone()).collect();
    measured.retain(|run| !wanted.contains(&run.workload));
    let fitted = measured.len();
    measured.extend(new);
    measured.extend(measured::read_all(&named.again, &[])?);
    let mut known: Vec<&str> = measured.iter().map(|run| run.workload.as_str()).collect();
    if let Some(unknown) = named.names.iter().find(|name| !known.contains(&name.as_str())) {
        known.dedup();
        let hint = blis_scenario::problem::hint(unknown, known.iter().copied());
        let names = blis_scenario::problem::quoted(&known);
        return Err(Failure::Input(format!(
            "no measured workload `{unknown}`{hint}; legal: a folder, a CSV file, or one of {names}"
        )));
    }
    wanted.extend(named.names.iter().cloned());
    wanted.dedup();
    Ok(Read { measured, fitted, wanted })
}

/// The files of steps of `paths`, each once: a file of requests names the run beside it.
fn steps_of(paths: &[PathBuf]) -> Vec<PathBuf> {
    let steps = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let run = name.as_deref().and_then(|name| name.strip_suffix(".requests.csv"));
        run.map_or_else(|| path.clone(), |run| path.with_file_name(format!("{run}.steps.csv")))
    };
    let mut all: Vec<PathBuf> = paths.iter().map(steps).collect();
    all.sort();
    all.dedup();
    all
}
