//! A trace to read: the file or standard input, its format, and which part of it.

use crate::args::TraceInputArgs;
use crate::failure::Failure;
use blis_core::Span;
use blis_scenario::problem::{hint, quoted};
use blis_scenario::{Problem, input};
use blis_workload::{Sample, SpecError, TraceEdit, TraceFormat, TraceOptions, TraceSource};
use std::io::{self, BufReader};
use std::path::Path;

const BUFFER: usize = 256 << 10;

/// Opens what `args` name.
pub(super) fn open(args: &TraceInputArgs) -> Result<TraceSource, Failure> {
    let format = args.from.as_deref().map(format).transpose()?;
    let options = TraceOptions { format, edit: edit(args)? };
    if is_stdin(args) {
        let reader = Box::new(BufReader::with_capacity(BUFFER, io::stdin()));
        return Ok(TraceSource::from_reader(reader, &name(args), &options)?);
    }
    // Whether a name is wrong or the system is at fault is told by the first error of all.
    let name = name(args);
    let meta = std::fs::metadata(&args.file).map_err(|error| Problem::unreadable(&name, &error))?;
    if meta.is_dir() {
        let message = format!("{name}: cannot read: this is a directory; name a trace file");
        return Err(Failure::Input(message));
    }
    let file = input::open(&args.file).map_err(|error| Problem::unreadable(&name, &error))?;
    let reader = Box::new(BufReader::with_capacity(BUFFER, file));
    Ok(TraceSource::from_reader(reader, &name, &options)?)
}

/// What messages and reports call it.
pub(super) fn name(args: &TraceInputArgs) -> String {
    if is_stdin(args) { "standard input".to_owned() } else { args.file.display().to_string() }
}

fn is_stdin(args: &TraceInputArgs) -> bool {
    args.file == Path::new("-")
}

fn format(name: &str) -> Result<TraceFormat, Failure> {
    TraceFormat::from_name(name).ok_or_else(|| {
        let known = TraceFormat::ALL.map(TraceFormat::name);
        let (near, known) = (hint(name, known), quoted(&known));
        Failure::Input(format!("--from: unknown format `{name}`{near}; known: {known}"))
    })
}

fn edit(args: &TraceInputArgs) -> Result<TraceEdit, Failure> {
    if args.sample_seed.is_some() && args.sample.is_none() {
        let message = "--sample-seed: it needs `--sample`";
        return Err(Failure::Input(message.to_owned()));
    }
    let seed = args.sample_seed.unwrap_or(0);
    let edit = TraceEdit {
        speedup: args.speedup.unwrap_or(1.0),
        from: args.start.map(|seconds| span("--start", seconds)).transpose()?,
        until: args.end.map(|seconds| span("--end", seconds)).transpose()?,
        sample: args.sample.map(|share| Sample { share, seed }),
        limit: args.limit,
    };
    edit.validate().map_err(|SpecError { field, found, legal }| {
        let flag = match field.as_str() {
            "from" => "--start".to_owned(),
            "until" => "--end".to_owned(),
            "sample.share" => "--sample".to_owned(),
            field => format!("--{field}"),
        };
        Failure::Input(format!("{flag}: found `{found}`; legal: {legal}"))
    })?;
    Ok(edit)
}

/// A time of the trace that a flag gives in seconds.
fn span(flag: &str, seconds: f64) -> Result<Span, Failure> {
    let most = Span::LONGEST.as_secs_f64();
    if (0.0..=most).contains(&seconds) {
        return Ok(Span::from_secs_f64(seconds));
    }
    let legal = format!("a number from 0 to {most} s (ten years)");
    Err(Failure::Input(format!("{flag}: found `{seconds}`; legal: {legal}")))
}
