//! Writes a profile as YAML, with what every number means beside it.

use super::{FORMAT, ProfileFile};
use crate::yaml::quoted;
use blis_latency::profile::host::HOST;
use blis_latency::profile::padding::Sizes;
use blis_latency::profile::term::ALL;
use blis_latency::profile::{Parameters, VARIABLES};
use std::fmt::Write;

/// The text of a profile file. Coefficients are exact: what is read back predicts the same bits.
///
/// # Panics
/// Never: writing to a string cannot fail.
pub fn text(file: &ProfileFile) -> String {
    write(file).expect("writing to a string cannot fail")
}

fn write(file: &ProfileFile) -> Result<String, std::fmt::Error> {
    let parameters = file.profile.parameters();
    let mut out = String::new();
    writeln!(out, "# How long an engine step takes; written by `blis calibrate`.")?;
    writeln!(out, "format: {FORMAT}")?;
    head(&mut out, file)?;
    writeln!(out, "\n# Batches are padded to the next of these sizes.")?;
    writeln!(out, "padding:")?;
    for (name, Sizes { listed, then_multiples_of }) in
        [("decode", &parameters.padding.decode), ("prefill", &parameters.padding.prefill)]
    {
        let sizes: Vec<String> = listed.iter().map(u32::to_string).collect();
        writeln!(out, "  {name}:")?;
        writeln!(out, "    sizes: [{}]", sizes.join(", "))?;
        writeln!(out, "    then_multiples_of: {then_multiples_of}")?;
    }
    writeln!(out, "\n# Longest context by mean context of a batch, where the longest is unknown.")?;
    writeln!(out, "usual_spread: {:?}", parameters.usual_spread)?;
    if parameters.split_attention {
        writeln!(out, "\n# Decode attention splits long contexts over the GPU.")?;
        writeln!(out, "split_attention: true")?;
    }
    writeln!(out, "\n# Error over whole runs of workloads left out of the fit (share, RMS).")?;
    writeln!(out, "drift: {:?}", parameters.drift)?;
    writeln!(out, "\n# Microseconds by unit, with standard errors.\nterms_us:")?;
    let error = |at: usize| match parameters.covariance.get(at).map(|row| row[at]) {
        Some(variance) if variance > 0.0 => format!(" +- {:.2e}", variance.sqrt()),
        _ => String::new(),
    };
    for (at, (term, value)) in ALL.iter().zip(parameters.terms_us).enumerate() {
        writeln!(out, "  # {}{}: {}", term.unit, error(at), term.help)?;
        writeln!(out, "  {}: {value:?}", term.name)?;
    }
    if !parameters.sizes_us.is_empty() {
        writeln!(out, "\n# Extra time of steps with prefill, by padded size in tokens.")?;
        writeln!(out, "sizes_us:")?;
        for (at, (tokens, us)) in parameters.sizes_us.iter().enumerate() {
            let error = error(ALL.len() + at);
            writeln!(out, "  - {{tokens: {tokens}, us: {us:?}}}  #{error}")?;
        }
    }
    beside(&mut out, parameters)?;
    tail(&mut out, file)?;
    Ok(out)
}

/// What surrounds the steps: the gap between them, or the host beside them.
fn beside(out: &mut String, parameters: &Parameters) -> std::fmt::Result {
    let Some(host) = &parameters.host else {
        let gap = &parameters.gap;
        writeln!(out, "\n# From the end of a step to the beginning of the next.\ngap_us:")?;
        writeln!(out, "  step: {:?}", gap.step_us)?;
        writeln!(out, "  decode_seq: {:?}", gap.decode_seq_us)?;
        return writeln!(out, "  prefill_seq: {:?}", gap.prefill_seq_us);
    };
    writeln!(out, "\n# Host time next to the GPU's.")?;
    writeln!(out, "host_us:")?;
    for (term, value) in HOST.iter().zip(host.us) {
        writeln!(out, "  # {}: {}", term.unit, term.help)?;
        writeln!(out, "  {}: {value:?}", term.name)?;
    }
    writeln!(out, "\n# Error of host time over whole runs (share, RMS).")?;
    writeln!(out, "host_drift: {:?}", host.drift)
}

fn head(out: &mut String, file: &ProfileFile) -> std::fmt::Result {
    let machine = &file.machine;
    let tp = machine.tp.map(|tp| tp.to_string());
    let known = [("model", &machine.model), ("hardware", &machine.hardware), ("tp", &tp)];
    if known.iter().any(|(_, value)| value.is_some()) {
        writeln!(out, "machine:")?;
    }
    for (name, value) in known {
        if let Some(value) = value {
            let value = if name == "tp" { value.clone() } else { quoted(value) };
            writeln!(out, "  {name}: {value}")?;
        }
    }
    let provenance = &file.profile.parameters().provenance;
    if !provenance.is_empty() {
        writeln!(out, "\nprovenance:")?;
    }
    for line in provenance {
        writeln!(out, "  - {}", quoted(line))?;
    }
    Ok(())
}

fn tail(out: &mut String, file: &ProfileFile) -> std::fmt::Result {
    let parameters = file.profile.parameters();
    let none = if parameters.ranges.iter().any(Option::is_some) { "" } else { " {}" };
    writeln!(out, "\n# Fitted ranges; beyond these, a prediction is an extrapolation.")?;
    writeln!(out, "ranges:{none}")?;
    for (name, range) in VARIABLES.iter().zip(&parameters.ranges) {
        if let Some(range) = range {
            writeln!(out, "  {name}: [{:?}, {:?}]", range.min, range.max)?;
        }
    }
    if parameters.covariance.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n# Covariance of terms_us, then sizes_us, in their order: the lower triangle."
    )?;
    writeln!(out, "covariance:")?;
    for (i, row) in parameters.covariance.iter().enumerate() {
        let cells: Vec<String> = row.iter().take(i + 1).map(|&cell| brief(cell)).collect();
        writeln!(out, "  - [{}]", cells.join(", "))?;
    }
    Ok(())
}

/// Four digits are more than a covariance is known to.
fn brief(value: f64) -> String {
    if value.abs() > 0.0 { format!("{value:.3e}") } else { "0".to_owned() }
}
