//! `--timeline`: what every instance looks like at regular times, one CSV row each.
//!
//! Rows are in order of time, then of instances, as the samples are. They are written as these are
//! stated, so that memory does not grow with the run.

use super::requests::micros;
use super::{Lines, Recorder};
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;
use blis_core::{InstanceId, Span, Time};
use blis_metrics::{Fact, Gauges, Reading};
use std::io::{self, Write};

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

/// Opens the file `target`.
pub(crate) fn create(target: &Target) -> Result<Box<dyn Recorder>, Failure> {
    let output = Output::begun(target, &header())?;
    Ok(Lines::recorder(output, |out, at, fact: &Fact<'_>| match fact {
        Fact::Sample { instance, reading } => row(out, at, *instance, reading),
        _ => Ok(()),
    }))
}

fn row(out: &mut Output, at: Time, instance: InstanceId, reading: &Reading) -> io::Result<()> {
    let Gauges { counts, pending_transfer, shares } = Gauges::from(reading);
    write!(out, "{},{}", micros(at.since(Time::ZERO)), instance.0)?;
    for count in counts {
        write!(out, ",{count}")?;
    }
    write!(out, ",{}", micros(pending_transfer))?;
    for value in shares {
        // To six places; nothing where there is none.
        write!(out, ",{}", value.map_or_else(String::new, |value| format!("{value:.6}")))?;
    }
    writeln!(out)
}

fn header() -> String {
    let columns = ["time_us", "instance"].into_iter().chain(Gauges::COUNTS);
    columns.chain([Gauges::PENDING]).chain(Gauges::SHARES).collect::<Vec<_>>().join(",")
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
