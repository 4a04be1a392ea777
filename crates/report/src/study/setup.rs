//! What a study runs: its base, and what each arm, workload and swept value sets on top of it.

use crate::chart::unique;
use crate::model::{Block, Table};
use crate::text::inline;
use blis_lab::study::{Cell, Stated, Study};

/// What arms are made of and what they test; none if the study does not say.
pub(super) fn arms(study: &Study) -> Option<Table> {
    let arms = &study.design.factors[study.design.factor("arm")?];
    let row = |(level, name): (usize, &String)| {
        let tests = study.tests("arm", level).unwrap_or_default().to_owned();
        [name.clone(), study.with(level).join(", "), tests]
    };
    let rows = arms.levels.iter().enumerate().map(row);
    let table = Table::new("arms", ["arm", "components", "tests"], rows).without_empty();
    (table.header.len() > 1).then_some(table)
}

/// What workloads are; none if the study does not say.
pub(super) fn workloads(study: &Study) -> Option<Table> {
    let workloads = &study.design.factors[study.design.factor("workload")?];
    let row = |(level, name): (usize, &String)| {
        [name.clone(), study.tests("workload", level).unwrap_or_default().to_owned()]
    };
    let rows = workloads.levels.iter().enumerate().map(row);
    let table = Table::new("", ["workload", "what it is"], rows).without_empty();
    (table.header.len() > 1).then_some(table)
}

/// What was found for arms that are tuned, cell by cell; none if no arm is.
pub(super) fn tuned(study: &Study) -> Option<Table> {
    let row = |cell: &Cell| Some([cell.levels.join(", "), cell.tuned()?]);
    let rows: Vec<_> = study.cells.iter().filter_map(row).collect();
    let tuned = !rows.is_empty();
    tuned.then(|| Table::new("tuned arms", ["case", "parameters that were found"], rows))
}

/// All that the file sets, and how to run it.
pub(super) fn blocks(study: &Study, file: Option<&str>) -> Vec<Block> {
    let base = study.base_fields();
    let base: Vec<String> = base.iter().map(|(path, value)| format!("{path}: {value}")).collect();
    let mut blocks = vec![
        Block::prose("The base scenario; everything else is at its default:"),
        Block::Code(base.join("\n")),
    ];
    let sets = |of: &str, rows: Vec<[String; 2]>| {
        let table = Table::new("", [of, "sets"], rows).without_empty();
        (table.header.len() > 1).then(|| table.into())
    };
    let components = study.components.iter();
    let rows = components.map(|one| [one.name.clone(), fields(&one.fields())]).collect();
    blocks.extend(sets("component", rows));
    for (index, factor) in study.design.factors.iter().enumerate() {
        if factor.name == "arm" || factor.name == "workload" {
            let row = |(level, name): (usize, &String)| {
                [name.clone(), fields(&study.level_fields(index, level))]
            };
            let rows = factor.levels.iter().enumerate().map(row).collect();
            blocks.extend(sets(&factor.name, rows));
        } else {
            let levels = factor.levels.join(", ");
            blocks.push(Block::prose(format!("`{}` is swept over {levels}.", factor.name)));
        }
    }
    let notes = study.cells.iter().flat_map(|cell| &cell.plan.notes);
    let notes = unique(notes.map(String::as_str)).into_iter().map(str::to_owned);
    blocks.push(Block::List(notes.collect()));
    blocks.extend(file.map(|file| Block::Code(format!("blis study {file}"))));
    blocks
}

fn fields(fields: &[Stated]) -> String {
    let all = fields.iter().map(|(path, value)| format!("`{path}: {}`", inline(value)));
    all.collect::<Vec<_>>().join(", ")
}
