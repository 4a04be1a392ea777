//! Tuned arms: a baseline that nobody tuned is no match for a strategy that somebody did.
//!
//! An arm with `tuned: {strategy: llm-d-1.0, budget: 60}` gets, in each cell, the parameters that a
//! search of that many points finds best there by the first metric of the study. With `at: 90%` it
//! gets those that are best at this swept value, at all values. Searches have seeds of their own,
//! which no study uses, and the guards of `optimize`.

use crate::failure::Failure;
use crate::optimize::file::search;
use crate::optimize::{self, Chosen};
use crate::study::{Outline, Study, Untuned, Warmup};
use crate::trial::Runner;
use blis_scenario::pool;
use blis_scenario::problems::{Problems, every};
use blis_scenario::strategy;
use blis_scenario::yaml::{self, Node};

/// How many seeds each point is tried with, and what is recommended besides.
const SEEDS: usize = 2;

/// The study in `outline`, with all rates known and all arms tuned that are to be.
///
/// # Errors
/// The failure of the first measurement that failed.
pub fn settle(mut outline: Outline, runner: &Runner<'_>) -> Result<Study, Failure> {
    // What cannot be searched is refused before anything runs.
    let untuned = outline.untuned();
    let homes = untuned.iter().filter(|one| one.home == one.cell);
    let searches = every(homes.map(|&Untuned { home, calls, .. }| {
        let asked = question(&outline, home, calls)?;
        Ok::<_, Problems>((home, search(&asked)?))
    }))?;
    // Strategies have no say in saturations, so those of all cells are measured first.
    outline.clone().settle(runner)?;
    // A search asks for one point after the other, so several go on at a time.
    let jobs = pool::threads(runner.jobs, usize::MAX) / searches.len().max(1);
    let one = Runner { jobs: jobs.max(1), ..runner.clone() };
    let found = pool::each(runner.jobs, &searches, |(_, asked)| best(asked, &one))?;
    let found = found.into_iter().collect::<Result<Vec<Option<Node>>, Failure>>()?;
    for Untuned { cell, home, .. } in untuned {
        let search = searches.iter().position(|(cell, _)| *cell == home);
        if let Some(strategy) = search.and_then(|index| found[index].clone()) {
            outline.tune(cell, strategy)?;
        }
    }
    outline.settle(runner)
}

/// The strategy with the parameters that the search finds best.
fn best(asked: &optimize::Outline, runner: &Runner<'_>) -> Result<Option<Node>, Failure> {
    let search = asked.clone().settle(runner)?;
    let chosen = search.run(runner, false)?.chosen;
    let tree = |best: &Chosen| search.points.tree(&Node::empty(), best.candidate, &best.settings);
    let field = |tree: Node| tree.field(strategy::FIELD).cloned().unwrap_or_else(Node::empty);
    Ok(chosen.first().map(tree).map(field))
}

/// The search for the best parameters of the strategy in `cell`.
fn question(outline: &Outline, cell: usize, calls: usize) -> Result<Node, Problems> {
    let study = outline.study();
    let metric = study.metrics.iter().find(|metric| metric.less_is_better().is_some());
    let Some(metric) = metric else {
        let message = "arms are tuned by the first metric that has a better side; there is none";
        return Err(outline.tree(cell).problem("metrics", message));
    };
    let side = if metric.less_is_better() == Some(true) { "objective" } else { "maximise" };
    let text = format!(
        "question: which parameters are best here?\n{side}: {}\n\
         budget: {{calls: {calls}, seeds: {SEEDS}}}\nconfirm: {{seeds: {SEEDS}}}\n",
        metric.name()
    );
    let mut asked = yaml::read_text("tuned", &text)?;
    let mut base = outline.tree(cell).clone();
    if let Some(strategy) = base.field(strategy::FIELD) {
        asked.set(&[strategy::FIELD], strategy.clone());
    }
    strategy::POLICIES.iter().chain(&[strategy::FIELD]).for_each(|part| base.remove(part));
    if let (Warmup::Seconds(seconds), false) = (study.warmup, study.cells[cell].own_warmup) {
        base.set(&["warmup_s"], Node::from_flag("warmup", &seconds.to_string()));
    }
    asked.set(&["base"], base);
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::read_text;

    const STUDY: &str = "
question: is the default good?
base:
  cluster: {instances: 2}
  latency: {model: constant, step_us: 2000}
  engine: {total_kv_blocks: 500}
  workload: {preset: multi-turn-4x512, rate: 20, num_requests: 300}
arms:
  - {name: default, set: {strategy: seeds-3-2-2}}
  - {name: tuned, tuned: {strategy: seeds-3-2-2, budget: 8}}
metrics: [ttft_p99]
seeds: 2
";

    fn settled(text: &str) -> Result<Study, String> {
        let outline = read_text("s.yaml", text).map_err(|problems| problems.to_string())?;
        settle(outline, &Runner::default()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_tuned_arm_has_the_parameters_that_a_search_of_its_cell_found() {
        let study = settled(STUDY).expect("legal");
        assert_eq!(study.cells[0].tuned(), None);
        let found = study.cells[1].tuned().expect("it is tuned");
        assert!(found.starts_with("seeds-3-2-2["), "{found}");
        let outline = read_text("s.yaml", STUDY).expect("legal");
        let alone = Runner { jobs: 1, ..Runner::default() };
        let alone = settle(outline, &alone).expect("it runs");
        assert_eq!(alone.cells[1].tuned(), Some(found.clone()), "one run at a time");
        // The same parameters written by hand are the same runs.
        let text = STUDY.replace(
            "tuned: {strategy: seeds-3-2-2, budget: 8}",
            &format!("set: {{strategy: '{found}'}}"),
        );
        let written = settled(&text).expect("legal");
        assert_eq!(written.cells[1].plan.canonical(), study.cells[1].plan.canonical());
    }

    #[test]
    fn what_is_found_at_one_swept_value_is_used_at_all_of_them() {
        let sweep = "sweep: {workload.rate: [5, 20, 30]}\n";
        let homes = |text: &str| {
            let untuned = read_text("s.yaml", text).expect("legal").untuned();
            untuned.iter().map(|one| (one.cell, one.home)).collect::<Vec<_>>()
        };
        assert_eq!(homes(&(STUDY.to_owned() + sweep)), [(3, 3), (4, 4), (5, 5)]);
        let at = STUDY.replace("budget: 8", "budget: 8, at: 20") + sweep;
        assert_eq!(homes(&at), [(3, 4), (4, 4), (5, 4)]);
        let study = settled(&at).expect("legal");
        let tuned = |cell: usize| study.cells[cell].tuned().expect("it is tuned");
        assert_eq!([tuned(3), tuned(5)], [tuned(4), tuned(4)]);
    }

    #[test]
    fn what_cannot_be_tuned_is_refused_before_anything_runs() {
        for (from, to, message) in [
            ("budget: 8", "budget: 8, at: 30", "unknown swept value `30`"),
            ("strategy: seeds-3-2-2, budget", "strategy: seed-3-2-2, budget", "did you mean"),
            ("strategy: seeds-3-2-2, budget", "strategy: round-robin, budget", "nothing can be"),
            ("strategy: seeds-3-2-2, budget: 8", "budget: 8", "field `strategy` is missing"),
            ("budget: 8}", "budget: 8}, set: {scheduler: sjf}", "remove `set.scheduler`"),
            ("metrics: [ttft_p99]", "metrics: [offered]", "there is none"),
            ("arms:", "workloads: [{name: w, tuned: {strategy: lmetric}}]\narms:", "only arms"),
        ] {
            let told = settled(&STUDY.replace(from, to)).expect_err(message);
            assert!(told.contains(message), "{told}");
        }
    }
}
