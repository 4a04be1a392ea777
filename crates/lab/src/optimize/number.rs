//! What a search looks at: a metric in one of its workloads, or its mean over all of them.

use crate::hypothesis::{spelled, unknown};
use crate::metric::Metric;
use blis_scenario::row::Row;

/// The runs of a point, by workload and seed.
pub type Runs = Vec<Vec<Row>>;

/// A number of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number of each run.
    pub metric: Metric,
    /// The tenant whose requests it is of; absent: those of all.
    pub tenant: Option<String>,
    /// The workload whose it is, by its place in the list and its name; absent: the mean over all.
    pub workload: Option<(usize, String)>,
}

impl Number {
    /// That of `metric` over all workloads.
    pub fn of_all(metric: Metric) -> Number {
        Number { metric, tenant: None, workload: None }
    }

    /// Reads `metric` or `metric @ workload`, where the workloads have these names; complaints come
    /// with the part that they are about.
    pub(super) fn parse<'a>(text: &'a str, names: &[String]) -> Result<Number, (String, &'a str)> {
        let (metric, place) = match text.split_once('@') {
            None => (text, None),
            Some((metric, place)) => (metric, Some(place)),
        };
        let metric = Metric::parse(metric.trim()).map_err(|why| (why, metric))?;
        let workload = place.map(|place| workload(place, names)).transpose()?;
        Ok(Number { metric, tenant: None, workload })
    }

    /// How it is called.
    pub fn name(&self) -> String {
        let of = self.tenant.as_ref().map(|tenant| format!(" of tenant {tenant}"));
        let at = self.workload.as_ref().map(|(_, name)| format!(" @ {}", spelled(name)));
        let parts = [Some(self.metric.name()), of, at];
        parts.into_iter().flatten().collect()
    }

    /// Its value in a run.
    fn of(&self, row: &Row) -> Option<f64> {
        let Some(tenant) = &self.tenant else { return self.metric.of(&row.report) };
        let place = row.tenants.iter().position(|name| name == tenant)?;
        self.metric.of_requests(&row.report.tenants.get(place)?.1)
    }

    /// Its value with each seed, where `runs` have a sample.
    pub fn values(&self, runs: &[Vec<Row>]) -> Vec<Option<f64>> {
        let of = |row: &Row| self.of(row);
        let one = |rows: &Vec<Row>| rows.iter().map(of).collect();
        match (&self.workload, runs) {
            (Some((index, _)), _) => runs.get(*index).map(one).unwrap_or_default(),
            (None, [] | [_]) => runs.first().map(one).unwrap_or_default(),
            (None, [first, ..]) => {
                let all = |seed| runs.iter().map(|rows| of(&rows[seed])).collect();
                let mean = |seed: usize| {
                    let values: Option<Vec<f64>> = all(seed);
                    Some(self.metric.mean()?.over(&values?))
                };
                (0..first.len()).map(mean).collect()
            }
        }
    }
}

/// Which of `names` stands in `text`, perhaps in quotes.
fn workload<'a>(text: &'a str, names: &[String]) -> Result<(usize, String), (String, &'a str)> {
    let name = text.trim();
    let bare = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let name = bare.unwrap_or(name);
    if names.is_empty() {
        let message = format!("there are no workloads; remove `@ {name}`, or add `workloads:`");
        return Err((message, text));
    }
    let found = names.iter().position(|known| known == name);
    let index = found.ok_or_else(|| (unknown("workload", name, names, names.len()), text))?;
    Ok((index, names[index].clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["calm", "four times", "a @ b"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_number_is_of_one_workload_or_of_all_and_its_name_reads_back() {
        for (text, index) in [
            ("critical.ttft_p99", None),
            ("ttft_p99 @ four times", Some(1)),
            ("ttft_p99 @ \"a @ b\"", Some(2)),
        ] {
            let number = Number::parse(text, &names()).expect(text);
            assert_eq!(number.workload.as_ref().map(|(index, _)| *index), index);
            assert_eq!(number.name(), text);
        }
        let tight = Number::parse("ttft_p99@calm", &names()).expect("legal");
        assert_eq!(tight.name(), "ttft_p99 @ calm");
    }

    #[test]
    fn unknown_workloads_are_refused_with_the_known_ones() {
        let refusal =
            |text: &'static str, names: &[String]| Number::parse(text, names).expect_err(text);
        let (message, part) = refusal("ttft_p99 @ clam", &names());
        assert_eq!(
            message,
            "unknown workload `clam`, did you mean `calm`?; known: `calm`, `four times`, `a @ b`"
        );
        assert_eq!(part.trim(), "clam");
        let (message, _) = refusal("ttft_p99 @ calm", &[]);
        assert_eq!(message, "there are no workloads; remove `@ calm`, or add `workloads:`");
        let (message, part) = refusal("ttft @ calm", &names());
        assert!(message.starts_with("unknown number `ttft`"), "{message}");
        assert_eq!(part.trim(), "ttft");
    }
}
