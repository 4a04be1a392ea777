//! What a real server logged: its steps and its requests, read from CSV files.
//!
//! `calibrate` fits to them and `validate` compares with them. A run called `NAME` has the files
//! `NAME.steps.csv` and `NAME.requests.csv`; `NAME.repeat` is a second run of the same arrivals, as
//! is any other name that begins so (`NAME.repeat2`). The columns are those of
//! `data/h200/README.md`.

mod bench;
mod engine;
mod table;

pub use engine::{ENGINES, Engine};

use blis_core::math::count;
use blis_latency::StepShape;
use blis_latency::fit::log::{LoggedHost, LoggedRequest, LoggedStep, Row, Run};
use blis_latency::profile::term::Site;
use blis_scenario::problem::Problem;
use std::path::{Path, PathBuf};

const STEPS: &str = ".steps.csv";
const REQUESTS: &str = ".requests.csv";
/// How the files of `vllm bench serve` end.
const BENCH: &str = ".json";
/// What follows a workload's name in that of a second run.
const REPEAT: &str = ".repeat";

/// One run of a server.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it is called.
    pub name: String,
    /// What was served.
    pub workload: String,
    /// Every step, in order.
    pub steps: Vec<LoggedStep>,
    /// Where its requests were read from; `None` if they are not known.
    pub requests_path: Option<PathBuf>,
    /// Every request, by id.
    pub requests: Vec<MeasuredRequest>,
    /// Whether its requests have priorities, and it scheduled by them.
    pub by_priority: bool,
    /// How its engine was set, if `engines.csv` beside its files says so.
    pub engine: Option<Engine>,
    /// Whether only its clients were asked: its steps are then a guess.
    pub by_clients: bool,
}

/// A request as the server saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRequest {
    /// When it arrived.
    pub arrival_us: f64,
    /// When it was first scheduled.
    pub scheduled_us: f64,
    /// Tokens of its prompt.
    pub input_tokens: u32,
    /// How it fared.
    pub fared: Fared,
}

/// How a request fared, measured or simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fared {
    /// Its number in the trace.
    pub id: u64,
    /// Arrival to first token.
    pub ttft_us: f64,
    /// Arrival to last token.
    pub e2e_us: f64,
    /// Tokens it generated.
    pub output_tokens: u32,
    /// Tokens of its prompt that were cached when it was first scheduled.
    pub cached_tokens: u32,
    /// How often it was preempted.
    pub preemptions: u32,
}

impl Measured {
    /// The run whose steps are in the file `steps`, and whose requests are in `requests` if that is
    /// given.
    ///
    /// # Errors
    /// If a file cannot be read, or a row is not what it should be.
    pub fn read(steps: &Path, requests: Option<&Path>) -> Result<Measured, Problem> {
        let name = run_name(steps);
        let by_clients = steps.to_string_lossy().ends_with(BENCH);
        Ok(Measured {
            workload: workload_name(&name).to_owned(),
            engine: Engine::beside(steps, &name)?,
            name,
            steps: if by_clients { bench::read_steps(steps)? } else { read_steps(steps)? },
            by_clients,
            requests_path: requests.map(Path::to_owned),
            requests: requests.map(read_requests).transpose()?.unwrap_or_default(),
            by_priority: match requests {
                Some(path) => table::read_if(path, ["priority"])?.is_some(),
                None => false,
            },
        })
    }

    /// The run whose steps are in `steps`, with the requests beside it if they are there.
    ///
    /// # Errors
    /// As [`Measured::read`].
    pub fn read_beside(steps: &Path) -> Result<Measured, Problem> {
        let requests = steps.with_file_name(format!("{}{REQUESTS}", run_name(steps)));
        Measured::read(steps, Some(requests.as_path()).filter(|path| path.is_file()))
    }

    /// All runs of `folder`, in alphabetical order.
    ///
    /// # Errors
    /// If there are none, or one cannot be read.
    pub fn read_folder(folder: &Path) -> Result<Vec<Measured>, Problem> {
        let name = folder.display().to_string();
        let entries = folder.read_dir().map_err(|error| Problem::unreadable(&name, &error))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| Problem::unreadable(&name, &error))?.path();
            if path.file_name().is_some_and(|file| file.to_string_lossy().ends_with(STEPS)) {
                files.push(path);
            }
        }
        files.sort_by_key(|path| run_name(path));
        if files.is_empty() {
            let message = format!("no measured runs; legal: a folder with files `NAME{STEPS}`");
            return Err(Problem::of_file(&name, message));
        }
        files.iter().map(|path| Measured::read_beside(path)).collect()
    }

    /// What a fit sees of it.
    pub fn run(&self, block_size: u32) -> Run {
        let logged = |request: &MeasuredRequest| LoggedRequest {
            arrival_us: request.arrival_us,
            scheduled_us: request.scheduled_us,
            first_token_us: request.arrival_us + request.fared.ttft_us,
            last_token_us: request.arrival_us + request.fared.e2e_us,
            input_tokens: request.input_tokens,
            output_tokens: request.fared.output_tokens,
        };
        let requests: Vec<LoggedRequest> = self.requests.iter().map(logged).collect();
        let mut run = Run::from_log(&self.name, self.served(), &self.steps, &requests, block_size);
        if let (Some(trace), Some(engine)) = (&mut run.trace, &self.engine) {
            trace.largest_graph = Some(engine.max_cudagraph_capture_size);
        }
        run
    }

    /// How its requests fared, by id.
    pub fn fared(&self) -> Vec<Fared> {
        self.requests.iter().map(|request| request.fared).collect()
    }

    /// What was served, whatever the engine's settings: a fit that is to predict it must have seen
    /// nothing of that.
    pub fn served(&self) -> &str {
        self.engine.as_ref().map_or(&self.workload, |engine| &engine.workload)
    }

    /// Whether its engine scheduled the next step before it had the tokens of the one before.
    pub fn is_asynchronous(&self) -> bool {
        let early = self.steps.windows(2).filter(|pair| {
            let end = pair[0].start_us + pair[0].duration_us;
            pair[1].host.is_some_and(|host| host.scheduled_us < end)
        });
        2 * early.count() > self.steps.len()
    }

    /// Whether its engine logged what the host did, as vLLM's does with the project's logger.
    pub fn has_host(&self) -> bool {
        self.steps.iter().all(|step| step.host.is_some())
    }

    /// KV blocks that requests could use: as many as were free when nobody had any.
    pub fn usable_blocks(&self) -> u32 {
        self.steps.iter().map(|step| step.free_blocks_after).max().unwrap_or(0)
    }

    /// Whether it is another run of the arrivals of `other`, with the same settings.
    pub fn is_again(&self, other: &Measured) -> bool {
        let settings = |run: &Measured| (run.engine.clone(), run.is_asynchronous());
        self.name != other.name
            && self.served() == other.served()
            && settings(self) == settings(other)
    }

    /// Whether it is a second run of its workload.
    pub fn is_repeat(&self) -> bool {
        self.name != self.workload
    }
}

/// The runs in `steps`, files or folders, with the requests in `requests` or beside them.
///
/// # Errors
/// If one cannot be read, or `requests` has a file that belongs to no run.
pub fn read_all(steps: &[PathBuf], requests: &[PathBuf]) -> Result<Vec<Measured>, Problem> {
    let mut measured = Vec::new();
    for path in steps {
        if path.is_dir() {
            measured.extend(Measured::read_folder(path)?);
            continue;
        }
        let of_run = requests.iter().find(|other| run_name(other) == run_name(path));
        measured.push(match of_run {
            Some(requests) => Measured::read(path, Some(requests))?,
            None => Measured::read_beside(path)?,
        });
    }
    if let Some(lonely) = requests.iter().find(|path| {
        let name = run_name(path);
        !steps.iter().any(|steps| run_name(steps) == name)
    }) {
        let message = format!(
            "`{}` belongs to no run; its name up to `.requests.csv` must be that of a file of \
             steps up to `.steps.csv`",
            lonely.display()
        );
        return Err(Problem::of_file("requests", message));
    }
    // Sums of floats depend on the order: a fit does not depend on how its runs were named.
    measured.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(measured)
}

/// What the run in a file is called: the file's name without its endings.
fn run_name(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short =
        [STEPS, REQUESTS, ".csv", BENCH].iter().find_map(|ending| name.strip_suffix(ending));
    short.map(str::to_owned).unwrap_or(name)
}

/// What was served in a run.
pub fn workload_name(run: &str) -> &str {
    match run.find(REPEAT) {
        None | Some(0) => run,
        Some(end) => &run[..end],
    }
}

/// The first run of every workload, in their order. Where only repeats of a workload are known, one
/// of them is the first.
pub fn first_runs(measured: &[Measured]) -> Vec<&Measured> {
    let is_first = |(at, run): &(usize, &Measured)| {
        let same = |other: &Measured| other.workload == run.workload;
        let before = measured[..*at].iter().any(same);
        let original = measured.iter().any(|other| same(other) && !other.is_repeat());
        if original { !run.is_repeat() } else { !before }
    };
    measured.iter().enumerate().filter(is_first).map(|(_, run)| run).collect()
}

fn small(number: f64) -> u32 {
    u32::try_from(count(number)).unwrap_or(u32::MAX)
}

/// The steps in a file.
///
/// # Errors
/// If it cannot be read, or a row is not what it should be.
pub fn read_steps(path: &Path) -> Result<Vec<LoggedStep>, Problem> {
    let rows = table::read(
        path,
        [
            "start_us",
            "duration_us",
            "prefill_seqs",
            "prefill_tokens",
            "prefill_past_tokens",
            "prefill_attention_pairs",
            "decode_seqs",
            "decode_context_sum",
            "running_after",
            "waiting_after",
            "free_blocks_after",
        ],
    )?;
    let host = table::read_if(
        path,
        ["decode_longest", "scheduled_us", "schedule_us", "update_us", "launch_us"],
    )?;
    let step = |(at, row): (usize, [f64; 11])| LoggedStep {
        start_us: row[0],
        duration_us: row[1],
        shape: StepShape {
            prefill_seqs: small(row[2]),
            prefill_tokens: small(row[3]),
            prefill_past_tokens: count(row[4]),
            prefill_attention_pairs: count(row[5]),
            decode_seqs: small(row[6]),
            decode_context: count(row[7]),
            decode_longest: host.as_ref().map_or(0, |host| small(host[at][0])),
            ..StepShape::default()
        },
        running_after: small(row[8]),
        waiting_after: small(row[9]),
        free_blocks_after: small(row[10]),
        host: host.as_ref().map(|host| LoggedHost {
            scheduled_us: host[at][1],
            schedule_us: host[at][2],
            update_us: host[at][3],
            launch_us: host[at][4],
        }),
    };
    Ok(rows.into_iter().enumerate().map(step).collect())
}

/// The requests in a file, by id.
///
/// # Errors
/// If it cannot be read, or a row is not what it should be.
pub fn read_requests(path: &Path) -> Result<Vec<MeasuredRequest>, Problem> {
    let rows = table::read(
        path,
        [
            "request_id",
            "arrival_us",
            "scheduled_us",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "ttft_us",
            "e2e_us",
            "preemptions",
        ],
    )?;
    let request = |row: [f64; 9]| MeasuredRequest {
        arrival_us: row[1],
        scheduled_us: row[2],
        input_tokens: small(row[3]),
        fared: Fared {
            id: count(row[0]),
            ttft_us: row[6],
            e2e_us: row[7],
            output_tokens: small(row[4]),
            cached_tokens: small(row[5]),
            preemptions: small(row[8]),
        },
    };
    let mut requests: Vec<MeasuredRequest> = rows.into_iter().map(request).collect();
    requests.sort_by_key(|request| request.fared.id);
    Ok(requests)
}

/// Files of single steps that are looked for beside measured runs.
pub const GRIDS: [&str; 2] = ["steps_grid.csv", "steps_sizes.csv"];

/// The files of single steps: those that are `named`, or else those of `GRIDS` in the folders among
/// `places`.
pub fn grids(named: &[PathBuf], places: &[PathBuf]) -> Vec<PathBuf> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let beside = |folder: &PathBuf| GRIDS.map(|name| folder.join(name));
    places.iter().flat_map(beside).filter(|path| path.is_file()).collect()
}

/// Single steps that were measured without a server, those with at most `largest` prefill tokens.
///
/// # Errors
/// If the file cannot be read, or a row is not what it should be.
pub fn read_grid(path: &Path, largest: u32) -> Result<Run, Problem> {
    let rows = table::read(
        path,
        [
            "prefill_seqs",
            "prefill_tokens",
            "prefill_past_tokens",
            "decode_seqs",
            "decode_context",
            "step_us_median",
        ],
    )?;
    let rows = rows.into_iter().map(grid_row);
    let rows = rows.filter(|row| row.shape.prefill_tokens <= largest).collect();
    let name = run_name(path);
    Ok(Run { workload: name.clone(), name, site: Site::Bare, rows, trace: None })
}

/// A step of equal sequences.
fn grid_row([seqs, tokens, past, decodes, context, micros]: [f64; 6]) -> Row {
    let decode_seqs = small(decodes);
    let longest = if decode_seqs == 0 { 0 } else { small(context) };
    let (each, each_past) = (tokens / seqs.max(1.0), past / seqs.max(1.0));
    let shape = StepShape {
        prefill_seqs: small(seqs),
        prefill_tokens: small(tokens),
        prefill_past_tokens: count(past),
        prefill_attention_pairs: count(seqs * each * (each_past + 0.5 * each + 0.5)),
        decode_seqs,
        draft_tokens: 0,
        decode_context: u64::from(longest) * u64::from(decode_seqs),
        decode_longest: longest,
        shared_context: 0,
    };
    Row { shape, micros, gap_micros: None, weight: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Measured {
        Measured {
            name: name.to_owned(),
            workload: workload_name(name).to_owned(),
            steps: Vec::new(),
            requests_path: None,
            requests: Vec::new(),
            by_priority: false,
            engine: None,
            by_clients: false,
        }
    }

    #[test]
    fn only_a_repeat_is_a_second_run_whatever_dots_a_name_has() {
        let names = ["rate1.5", "rate1.5.repeat", "rate1.7", "a.b.repeat2", ".repeat", "plain"];
        let served = names.map(workload_name);
        assert_eq!(served, ["rate1.5", "rate1.5", "rate1.7", "a.b", ".repeat", "plain"]);
    }

    #[test]
    fn every_workload_has_one_first_run_even_if_only_repeats_are_known() {
        let runs = ["b.repeat", "a.repeat", "a", "b.repeat2", "c"].map(named);
        let first: Vec<&str> = first_runs(&runs).iter().map(|run| run.name.as_str()).collect();
        assert_eq!(first, ["b.repeat", "a", "c"]);
    }
}
