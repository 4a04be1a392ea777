//! egobox on the standard problems: `egobox` as it comes, `egobox-matern` with the kernel and the
//! criterion that this project uses.

use crate::{Bench, Call, INITIAL, report};
use blis_core::Value;
use blis_optimize::{Kind, Point, Problem};
use egobox_ego::{CorrelationSpec, EgorBuilder, EgorConfig, InfillStrategy, XType};
use ndarray::{Array2, ArrayView1, ArrayView2};
use std::cell::RefCell;
use std::io::Write;

type Row = (String, Vec<f64>, Vec<f64>);

pub fn run(out: &mut impl Write, method: &str, bench: Bench, calls: usize) {
    let problem = bench.problem.clone();
    let (name, seed) = (bench.standard.name, bench.seed);
    let outputs = problem.objectives + problem.constraints;
    let rows: RefCell<Vec<Row>> = RefCell::new(Vec::new());
    let bench = RefCell::new(bench);
    let measure = |x: &ArrayView2<f64>| {
        let mut y = Array2::zeros((x.nrows(), outputs));
        for (i, row) in x.rows().into_iter().enumerate() {
            let point = point(&problem, row);
            let Call { measured, truth } = bench.borrow_mut().call(&point);
            for (j, value) in measured.iter().enumerate() {
                y[[i, j]] = *value;
            }
            rows.borrow_mut().push((point.to_string(), measured, truth));
        }
        y
    };
    let configure = |config: EgorConfig| {
        let config =
            config.n_doe(INITIAL).max_iters(calls - INITIAL).n_cstr(problem.constraints).seed(seed);
        if method == "egobox-matern" {
            config
                .configure_gp(|gp| gp.correlation_spec(CorrelationSpec::MATERN52))
                .infill_strategy(InfillStrategy::LogEI)
        } else {
            config
        }
    };
    let egor = EgorBuilder::optimize(&measure).configure(configure);
    let ended = egor.min_within_mixint_space(&types(&problem)).map(|egor| egor.run());
    if let Err(why) | Ok(Err(why)) = ended {
        eprintln!("{method} {name} {seed}: {why}");
    }
    for (call, (point, measured, truth)) in rows.into_inner().iter().take(calls).enumerate() {
        report(out, (method, name, seed, call), point, measured, truth);
    }
}

fn types(problem: &Problem) -> Vec<XType> {
    let dimensions = problem.space.dimensions().iter();
    dimensions
        .map(|dimension| match &dimension.kind {
            Kind::Float { min, max } => XType::Float(*min, *max),
            Kind::Log { min, max } => XType::Float(min.ln(), max.ln()),
            Kind::Int { min, max } => {
                XType::Int(*min as i32, *max as i32)
            }
            Kind::Choice { options } => XType::Enum(options.len()),
        })
        .collect()
}

fn point(problem: &Problem, row: ArrayView1<f64>) -> Point {
    let dimensions = problem.space.dimensions().iter().zip(row);
    let values = dimensions.map(|(dimension, &x)| {
        Some(match &dimension.kind {
            Kind::Float { min, max } => Value::Float(x.clamp(*min, *max)),
            Kind::Log { min, max } => Value::Float(x.exp().clamp(*min, *max)),
            Kind::Int { min, max } => {
                Value::Int((x.round() as u64).clamp(*min, *max))
            }
            Kind::Choice { options } => options[x.round() as usize].clone(),
        })
    });
    Point { values: values.collect() }
}
