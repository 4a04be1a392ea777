//! Regrets of measurements, by whatever method they were chosen.
//!
//! After 30 and after 50 calls, two ways to name a winner are judged by the truth: the best
//! measured value among what was feasible as measured, and the recommendation of this project's
//! model, fitted to the same measurements. For two objectives the hypervolume of the true values
//! stands for both.

use crate::{Bench, parse_point};
use blis_optimize::{History, pareto, recommend};
use std::io::Write;

/// After how many calls.
const STOPS: [usize; 2] = [30, 50];

struct Row {
    point: String,
    measured: Vec<f64>,
    truth: Vec<f64>,
}

/// Reads measurements and writes
/// `method,problem,seed,calls,regret_measured,feasible_measured,regret_model,feasible_model`.
pub fn judge(out: &mut impl Write, files: &[&str]) {
    writeln!(
        out,
        "method,problem,seed,calls,regret_measured,feasible_measured,regret_model,feasible_model"
    )
    .expect("written");
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{file}: {why}"));
        let mut run: Vec<Row> = Vec::new();
        let mut last = String::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            let key = fields[..3].join(",");
            if key != last {
                judge_run(out, &last, &run);
                run.clear();
                last = key;
            }
            let numbers = |text: &str| -> Vec<f64> {
                text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
            };
            run.push(Row {
                point: fields[4].to_owned(),
                measured: numbers(fields[5]),
                truth: numbers(fields[6]),
            });
        }
        judge_run(out, &last, &run);
    }
}

fn judge_run(out: &mut impl Write, key: &str, run: &[Row]) {
    if run.is_empty() {
        return;
    }
    let name = key.split(',').nth(1).expect("a problem");
    let bench = Bench::new(name, 0);
    for stop in STOPS.into_iter().filter(|&stop| stop <= run.len()) {
        let run = &run[..stop];
        if bench.problem.objectives > 1 {
            let points: Vec<Vec<f64>> = run.iter().map(|row| row.truth.clone()).collect();
            let volume = pareto::hypervolume(&points, bench.standard.best);
            writeln!(out, "{key},{stop},{volume:.6},1,{volume:.6},1").expect("written");
            continue;
        }
        let (measured, model) = (best_measured(run), by_model(&bench, run));
        let cell = |index: usize| {
            let truth = &run[index].truth;
            let feasible = u8::from(truth[1..].iter().all(|&c| c <= 0.0));
            format!("{:.9},{feasible}", truth[0] - bench.standard.best[0])
        };
        writeln!(out, "{key},{stop},{},{}", cell(measured), cell(model)).expect("written");
    }
}

/// The least measured objective among the feasible; if there is none, the least violation.
fn best_measured(run: &[Row]) -> usize {
    let violation = |row: &Row| row.measured[1..].iter().map(|c| c.max(0.0)).sum::<f64>();
    let rank = |index: &usize| {
        let row = &run[*index];
        (violation(row), row.measured[0])
    };
    let order = |a: &usize, b: &usize| {
        let ((va, ya), (vb, yb)) = (rank(a), rank(b));
        va.total_cmp(&vb).then(ya.total_cmp(&yb))
    };
    (0..run.len()).min_by(order).expect("a measurement")
}

fn by_model(bench: &Bench, run: &[Row]) -> usize {
    let mut history = History::new(bench.problem.clone());
    for row in run {
        let point = parse_point(&bench.problem, &row.point);
        history.tell(bench.observation(point, &row.measured)).expect("a point of the problem");
    }
    recommend(&history, 0).expect("something was told")
}
