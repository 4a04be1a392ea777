//! `--timeline`: what every instance looks like at regular times, one CSV row each.
//!
//! Rows are in order of time, then of instances, as the samples are. They are written as these are
//! stated, so that memory does not grow with the run.

use crate::failure::Failure;
use crate::output::{Output, failed};
use crate::report::requests::micros;
use crate::target::Target;
use blis_core::{InstanceId, Span, Time};
use blis_metrics::{Fact, Gauges, Listener, Reading};
use std::io::{self, Write};
use std::path::PathBuf;

const DEFAULT_INTERVAL_MS: f64 = 100.0;
const LEAST_INTERVAL_MS: f64 = 0.001;
const MOST_INTERVAL_MS: f64 = 1e9;

/// The time between rows: `text` is what `--timeline-interval-ms` was given.
pub(crate) fn interval(text: Option<&str>) -> Result<Span, Failure> {
    let Some(text) = text else { return Ok(Span::from_micros_f64(DEFAULT_INTERVAL_MS * 1e3)) };
    let number: Option<f64> = text.parse().ok();
    let legal = number.filter(|ms| (LEAST_INTERVAL_MS..=MOST_INTERVAL_MS).contains(ms));
    legal.map(|ms| Span::from_micros_f64(ms * 1e3)).ok_or_else(|| {
        Failure::Input(format!(
            "--timeline-interval-ms: `{text}`; legal: a number from 0.001 to 1e9 (milliseconds)"
        ))
    })
}

/// Writes a row for every sample.
pub(crate) struct Timeline {
    path: PathBuf,
    output: Output,
    /// The first write that failed; a listener cannot stop a run, so it is told at the end.
    failure: Option<io::Error>,
}

impl Timeline {
    /// Opens the file `target`.
    pub(crate) fn create(target: &Target) -> Result<Timeline, Failure> {
        let path = target.given.clone();
        let mut output = Output::create(target)?;
        writeln!(output, "{}", header()).map_err(|error| failed(&path, &error))?;
        Ok(Timeline { path, output, failure: None })
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(failed(&self.path, &error)),
            None => self.output.finish(),
        }
    }

    fn row(&mut self, at: Time, instance: InstanceId, reading: &Reading) -> io::Result<()> {
        let Gauges { counts, pending_transfer, shares } = Gauges::from(reading);
        write!(self.output, "{},{}", micros(at.since(Time::ZERO)), instance.0)?;
        for count in counts {
            write!(self.output, ",{count}")?;
        }
        write!(self.output, ",{}", micros(pending_transfer))?;
        for value in shares {
            write!(self.output, ",{}", share(value))?;
        }
        writeln!(self.output)
    }
}

fn header() -> String {
    let columns = ["time_us", "instance"].into_iter().chain(Gauges::COUNTS);
    columns.chain([Gauges::PENDING]).chain(Gauges::SHARES).collect::<Vec<_>>().join(",")
}

/// A share to six places; nothing where there is none.
fn share(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}

impl Listener for Timeline {
    fn hear(&mut self, at: Time, fact: &Fact<'_>) {
        let Fact::Sample { instance, reading } = fact else { return };
        if self.failure.is_none()
            && let Err(error) = self.row(at, *instance, reading)
        {
            self.failure = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_of_milliseconds_above_zero() {
        assert_eq!(interval(None).ok(), Some(Span::from_micros(100_000)));
        assert_eq!(interval(Some("0.0015")).ok(), Some(Span::from_nanos(1_500)));
        for text in ["0", "-1", "0.0001", "2e9", "nan", "inf", "", "ten"] {
            assert!(interval(Some(text)).is_err(), "{text}");
        }
    }
}
