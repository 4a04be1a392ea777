//! SLOs: comparisons of numbers of a run, in the language of claims.

use crate::design::Design;
use crate::hypothesis::{Comparison, Expr, Mistake, Reference, Relation, parse};
use crate::metric::Metric;
use blis_core::SloClass;
use blis_core::math::ln;
use blis_scenario::problem::{Place, Problem, hint, quoted};
use blis_scenario::row::Row;
use blis_scenario::scenario::{Plan, Workload};

/// The share of requests that must be within the targets of their class, unless somebody says.
const USUAL_ATTAINMENT: &str = "95%";

/// What must hold, e.g. `critical.ttft_p99 <= 200ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// As written.
    pub text: String,
    pub(super) comparison: Comparison,
}

impl Slo {
    /// The comparisons in `text`, of which there may be several with `and` between them.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(text: &str) -> Result<Vec<Slo>, Mistake> {
        let design = Design::default();
        let claim = parse(text, &design)?;
        let alone = claim.parts.len() == 1;
        let one = |comparison: Comparison| {
            if let Some(message) = unbounded(&comparison) {
                return Err(Mistake { at: 0..text.len(), message });
            }
            let text = if alone { text.trim().to_owned() } else { comparison.text(&design) };
            Ok(Slo { text, comparison })
        };
        let all: Vec<Slo> = claim.parts.into_iter().map(one).collect::<Result<_, _>>()?;
        let spelled = text.split(" and ").zip(&all);
        match spelled.into_iter().find(|(text, slo)| slo.lacks_unit(text)) {
            Some((bare, _)) => {
                let number = bare.rsplit([' ', '<', '=']).next().unwrap_or_default();
                let message = format!("a time has a unit; write `{number}s` or `{number}ms`");
                Err(Mistake { at: 0..text.len(), message })
            }
            None => Ok(all),
        }
    }

    /// Whether it bounds a time by a bare number: people who think of seconds get milliseconds.
    fn lacks_unit(&self, text: &str) -> bool {
        let time = self.limit().is_some_and(|(metric, _)| metric.unit() == "ms");
        time && text.trim_end().ends_with(|last: char| last.is_ascii_digit() || last == '.')
    }

    /// The same, with complaints as problems of what stands at `place`.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn read(text: &str, place: Place, path: &str) -> Result<Vec<Slo>, Problem> {
        Slo::parse(text).map_err(|Mistake { at, message }| {
            Problem::new(place, path, message).pointing(text, &at)
        })
    }

    /// What is usual for `plan`: of every class that has targets and sends requests, 95 % are
    /// within them.
    ///
    /// # Errors
    /// If there is no such class.
    ///
    /// # Panics
    /// Never: what it writes is legal.
    pub fn usual(plan: &Plan) -> Result<Vec<Slo>, Problem> {
        let sends = |class: &SloClass| match &plan.workload {
            Workload::Mix(mix) => mix.clients.iter().any(|client| client.class == *class),
            Workload::Trace { .. } => true,
        };
        let promised = |class: &SloClass| !plan.slo.of(*class).is_empty();
        let classes = SloClass::ALL.into_iter().filter(|class| sends(class) && promised(class));
        let one = |class: SloClass| {
            let text = format!("{}.slo_attainment >= {USUAL_ATTAINMENT}", class.name());
            Slo::parse(&text).expect("it is well-formed")
        };
        let all: Vec<Slo> = classes.flat_map(one).collect();
        if all.is_empty() {
            let message = "no class with requests has a target, so any rate would do; set one, \
                           e.g. `slo: chat` in the scenario, or `--slo \"ttft_p99 <= 500ms\"`";
            return Err(Problem::of_file("slo", message));
        }
        Ok(all)
    }

    /// The metric and the number that it must stay below, if it says so of one metric.
    pub fn limit(&self) -> Option<(Metric, f64)> {
        let Comparison { left: Expr::Value(bounded), relation, right } = &self.comparison else {
            return None;
        };
        let below = matches!(relation, Relation::Below | Relation::AtMost);
        right.constant().filter(|_| below).map(|limit| (bounded.metric, limit))
    }

    /// Whose requests it is about, if `plan` is known to send none of them, and who does send.
    pub fn silent(&self, plan: &Plan) -> Option<String> {
        let Workload::Mix(mix) = &plan.workload else { return None };
        let mut classes: Vec<&str> = mix.clients.iter().map(|client| client.class.name()).collect();
        let mut tenants: Vec<&str> = mix.clients.iter().map(|it| it.tenant.as_str()).collect();
        for names in [&mut classes, &mut tenants] {
            names.sort_unstable();
            names.dedup();
        }
        let metrics = self.comparison.references().into_iter().map(|reference| reference.metric);
        let said = |(what, name, known): (&str, String, &[&str])| {
            let same = |other: &&str| other.replace('_', "-") == name;
            let sends = known.iter().any(same);
            (!sends).then(|| {
                let hint = hint(&name, known.iter().copied());
                format!("no {what} `{name}` sends requests{hint}; those that do: {}", quoted(known))
            })
        };
        let mut of = metrics.filter_map(|metric| match (metric.class(), metric.tenant_name()) {
            (Some(class), _) => Some(("class", class.name().to_owned(), &classes[..])),
            (None, Some(tenant)) => Some(("tenant", tenant.to_owned(), &tenants[..])),
            (None, None) => None,
        });
        of.find_map(said)
    }

    /// How much room is left in a run: at least 0 if it holds there. The logarithm of a ratio if
    /// both sides are positive, else a difference; `None` without a sample.
    pub(super) fn slack(&self, row: &Row) -> Option<f64> {
        let of = |reference: &Reference| reference.metric.of_run(row);
        let Comparison { left, relation, right } = &self.comparison;
        let (left, right) = (left.value(&of)?, right.value(&of)?);
        let above = if left > 0.0 && right > 0.0 { ln(left / right) } else { left - right };
        Some(match relation {
            Relation::Above | Relation::AtLeast => above,
            Relation::Below | Relation::AtMost | Relation::About(_) => -above,
        })
    }

    /// The unit of what is bounded behind a space, if it is a metric that has one.
    pub(super) fn unit(&self) -> String {
        match &self.comparison.left {
            Expr::Value(reference) => match reference.metric.unit() {
                "" => String::new(),
                unit => format!(" {unit}"),
            },
            _ => String::new(),
        }
    }

    /// The value that is bounded in a run, as the left side gives it.
    pub fn value(&self, row: &Row) -> Option<f64> {
        self.comparison.left.value(&|reference: &Reference| reference.metric.of_run(row))
    }
}

/// Why a comparison bounds nothing from its bad side, and what to write.
fn unbounded(comparison: &Comparison) -> Option<String> {
    let above = match comparison.relation {
        Relation::About(_) => return Some("an SLO has one bound; write `<=` or `>=`".to_owned()),
        Relation::Above | Relation::AtLeast => true,
        Relation::Below | Relation::AtMost => false,
    };
    let Expr::Value(Reference { metric, .. }) = &comparison.left else { return None };
    let less = metric.less_is_better().filter(|less| *less == above)?;
    let (better, sign) = if less { ("less", "<=") } else { ("more", ">=") };
    let name = metric.name();
    Some(format!(
        "{better} of `{name}` is better; write `{name} {sign}` and the worst that will do"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_slo_is_a_claim_about_one_run() {
        let all = Slo::parse("critical.ttft_p99 <= 0.2s and completed >= 0.99 * offered");
        let all = all.expect("legal");
        assert_eq!(all[0].text, "critical.ttft_p99 <= 0.2s");
        assert_eq!(all[1].text, "completed >= 0.99 * offered");
        let mut row = Row::default();
        let cluster = &mut row.report.cluster;
        (cluster.offered, cluster.completed) = (100, 99);
        let slack = all[1].slack(&row).expect("both are known");
        assert!(slack.abs() < 1e-12, "{slack}");
        row.report.cluster.completed = 90;
        assert!(all[1].slack(&row).is_some_and(|slack| slack < 0.0));
        assert_eq!(all[0].slack(&row), None, "no sample, no slack");
    }

    #[test]
    fn what_is_no_bound_is_refused() {
        for (text, message) in [
            ("ttft_p99", "a comparison"),
            ("ttft_p99 ~ 3ms within 5%", "an SLO has one bound"),
            ("ttft_p98 <= 3ms", "unknown number `ttft_p98`"),
            ("ttft_p99 <= 95%", "the same on both sides"),
            ("3 <= 4", "compares no metric"),
            ("ttft_p99(full) <= 3ms", "arm"),
            ("ttft_p99 >= 5", "less of `ttft_p99` is better; write `ttft_p99 <=`"),
            ("5ms < critical.itl_mean", "write `critical.itl_mean <=`"),
            ("slo_attainment <= 95%", "more of `slo_attainment` is better; write"),
        ] {
            let mistake = Slo::parse(text).expect_err(text);
            assert!(mistake.message.contains(message), "{text}: {}", mistake.message);
        }
        assert!(Slo::parse("offered >= 5").is_ok(), "neither side is better");
    }
}
