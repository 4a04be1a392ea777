//! `blis trace inspect --format json`: everything, as one object.

use crate::trace::inspect::Inspected;
use blis_core::Source;
use blis_scenario::json::Fields;
use blis_workload::inspect::{Arrivals, Bar, Group, QUANTILE_ERROR, SessionStats, Sharing, Spread};
use serde_json::Value;

/// Stretches of the timeline.
const COLUMNS: usize = 100;
/// Rows of a histogram, at most.
const ROWS: usize = 64;

/// What was found.
pub(super) fn object(inspected: &Inspected) -> Value {
    let Inspected { name, source, found, follow_ups } = inspected;
    let mut all = Fields::default();
    all.text("file", name.as_str());
    all.text("format", source.format().name());
    all.count("requests", found.requests);
    all.count("follow_ups", *follow_ups);
    all.value("skipped", skipped(inspected));
    if let Some(seen) = &found.arrivals {
        all.value("arrivals", arrivals(seen));
    }
    for (key, lengths) in [
        ("input_tokens", &found.input),
        ("output_tokens", &found.output),
        ("total_tokens", &found.total),
    ] {
        if let Some(lengths) = lengths {
            all.value(key, tokens(lengths));
        }
    }
    all.number("quantile_error", Some(QUANTILE_ERROR));
    if let Some(seen) = &found.sharing {
        all.value("sharing", sharing(seen));
    }
    if let Some(seen) = &found.sessions {
        all.value("sessions", sessions(seen));
    }
    if let Some(deadlines) = &found.deadlines {
        let mut fields = millis(deadlines);
        fields.count("requests", deadlines.count);
        all.value("deadline", fields.into_value());
    }
    let mut classes = Fields::default();
    for (class, seen) in &found.classes {
        classes.value(class.name(), group(seen));
    }
    all.value("classes", classes.into_value());
    all.count("tenant_count", found.tenant_count);
    let mut tenants = Fields::default();
    for (tenant, seen) in &found.tenants {
        tenants.value(&source.tenant_name(*tenant), group(seen));
    }
    all.value("tenants", tenants.into_value());
    all.into_value()
}

fn skipped(inspected: &Inspected) -> Value {
    let skipped = inspected.source.skipped();
    let mut fields = Fields::default();
    fields.count("failed", skipped.failed);
    fields.count("without_input", skipped.without_input);
    fields.count("without_output", skipped.without_output);
    fields.into_value()
}

fn arrivals(seen: &Arrivals) -> Value {
    // Destructured without `..`, so that a new number makes this line decide how it is called.
    let Arrivals {
        first,
        last,
        rate,
        gap_cv,
        peak_1s,
        peak_10s,
        dispersion_1s,
        dispersion_10s,
        timeline,
    } = seen;
    let mut fields = Fields::default();
    fields.number("first_s", Some(first.as_secs_f64()));
    fields.number("last_s", Some(last.as_secs_f64()));
    fields.number("rate_per_sec", *rate);
    fields.number("gap_cv", *gap_cv);
    fields.number("peak_1s_per_sec", *peak_1s);
    fields.number("peak_10s_per_sec", *peak_10s);
    fields.number("dispersion_1s", *dispersion_1s);
    fields.number("dispersion_10s", *dispersion_10s);
    fields.value("timeline_per_sec", timeline.rates(COLUMNS));
    fields.into_value()
}

fn tokens(spread: &Spread) -> Value {
    let mut fields = counts(spread);
    fields.count("sum", u64::try_from(spread.sum).unwrap_or(u64::MAX));
    let bar = |bar: &Bar| {
        let mut fields = Fields::default();
        fields.count("from", bar.from);
        fields.count("to", bar.to);
        fields.count("count", bar.count);
        fields.into_value()
    };
    fields.value("histogram", spread.bars(ROWS).iter().map(bar).collect::<Vec<Value>>());
    fields.into_value()
}

fn counts(spread: &Spread) -> Fields {
    let mut fields = Fields::default();
    fields.number("mean", Some(spread.mean));
    for (name, value) in quantiles(spread) {
        fields.count(name, value);
    }
    fields
}

/// Nanoseconds in milliseconds.
fn millis(spread: &Spread) -> Fields {
    let mut fields = Fields::default();
    fields.number("mean_ms", Some(spread.mean / 1e6));
    for (name, nanos) in quantiles(spread) {
        fields.number(&format!("{name}_ms"), Some(blis_core::math::float(nanos) / 1e6));
    }
    fields
}

fn quantiles(spread: &Spread) -> [(&'static str, u64); 6] {
    let Spread { min, p10, p50, p90, p99, max, .. } = *spread;
    [("min", min), ("p10", p10), ("p50", p50), ("p90", p90), ("p99", p99), ("max", max)]
}

fn sharing(seen: &Sharing) -> Value {
    let Sharing { block_size, prompt_tokens, hit_tokens, requests_with_hit, blocks, stretches } =
        seen;
    let mut fields = Fields::default();
    fields.count("block_size", u64::from(*block_size));
    fields.number("hit_share", seen.hit_share());
    fields.count("hit_tokens", *hit_tokens);
    fields.count("prompt_tokens", *prompt_tokens);
    fields.count("requests_with_hit", *requests_with_hit);
    fields.count("blocks", *blocks);
    let stretch = |stretch: &blis_workload::inspect::SharedStretch| {
        let mut fields = Fields::default();
        fields.count("from", stretch.from);
        fields.count("to", stretch.to);
        fields.count("hits", stretch.hits);
        fields.count("saved_tokens", stretch.saved_tokens);
        fields.into_value()
    };
    fields.value("stretches", stretches.iter().map(stretch).collect::<Vec<Value>>());
    fields.into_value()
}

fn sessions(seen: &SessionStats) -> Value {
    let SessionStats { sessions, requests, rounds, gaps } = seen;
    let mut fields = Fields::default();
    fields.count("sessions", *sessions);
    fields.count("requests", *requests);
    fields.value("rounds", counts(rounds).into_value());
    if let Some(gaps) = gaps {
        fields.value("gaps", millis(gaps).into_value());
    }
    fields.into_value()
}

fn group(seen: &Group) -> Value {
    let Group { requests, input_tokens, output_tokens } = seen;
    let mut fields = Fields::default();
    fields.count("requests", *requests);
    fields.count("input_tokens", *input_tokens);
    fields.count("output_tokens", *output_tokens);
    fields.into_value()
}
