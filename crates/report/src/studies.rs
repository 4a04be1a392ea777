//! What several studies found: all verdicts in one table, and as a CSV file to keep.

use crate::model::{Block, Document, Table};
use crate::study::tally;
use crate::text::{effect, inline, quoted};
use blis_lab::study::{Findings, Study};
use blis_lab::verdict::Outcome;
use serde_json::{Value, json};

/// What became of a study or a search.
#[derive(Clone, Debug)]
pub struct Done {
    /// The name of its file.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What is said about each hypothesis of a study.
    pub judged: Vec<Judged>,
    /// What a search found, in a few words; empty for a study.
    pub gist: String,
    /// All that it found, for programs.
    pub data: Value,
}

/// What is said about a hypothesis.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its name.
    pub hypothesis: String,
    /// What it claims.
    pub claim: String,
    /// The verdict.
    pub outcome: Outcome,
    /// After how many seeds.
    pub seeds: usize,
    /// The effect that it hangs on, with its interval.
    pub effect: String,
}

impl Done {
    /// What became of `study`, which is called `name`.
    pub fn of_study(name: &str, study: &Study, findings: &Findings, data: Value) -> Done {
        let verdicts = study.hypotheses.iter().zip(&findings.verdicts);
        let judged = verdicts.map(|(asked, found)| Judged {
            hypothesis: asked.name.clone(),
            claim: inline(&asked.text),
            outcome: found.outcome,
            seeds: found.seeds,
            effect: effect(found),
        });
        Done {
            name: name.to_owned(),
            question: study.question.clone(),
            judged: judged.collect(),
            gist: String::new(),
            data,
        }
    }

    /// The verdicts.
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.judged.iter().map(|one| one.outcome).collect()
    }

    /// What was found, in a few words.
    pub fn told(&self) -> String {
        if self.gist.is_empty() { tally(&self.outcomes()) } else { self.gist.clone() }
    }

    /// Study, hypothesis, claim, verdict, seeds and effect of each verdict; one row for a search.
    fn rows(&self) -> Vec<[String; 6]> {
        let row = |one: &Judged| {
            let Judged { hypothesis, claim, outcome, seeds, effect } = one;
            let outcome = outcome.name().to_owned();
            [
                self.name.clone(),
                hypothesis.clone(),
                claim.clone(),
                outcome,
                seeds.to_string(),
                effect.clone(),
            ]
        };
        let search = (!self.gist.is_empty()).then(|| {
            let empty = String::new;
            [self.name.clone(), "(search)".to_owned(), empty(), empty(), empty(), self.gist.clone()]
        });
        self.judged.iter().map(row).chain(search).collect()
    }
}

/// All verdicts, a row each, which lead to `page` of their study if there are any, e.g.
/// `{name}.html`.
pub fn document(done: &[Done], page: Option<&str>) -> Document {
    let outcomes: Vec<Outcome> = done.iter().flat_map(Done::outcomes).collect();
    let summary = format!("{} studies and searches: {}.", done.len(), tally(&outcomes));
    let about = "A refuted claim is a result like any other. The effect is the one that \
                 decided the verdict, with its interval; `x` is a ratio.";
    let mut links = Vec::new();
    let mut rows = Vec::new();
    for one in done {
        for [study, hypothesis, _, outcome, _, effect] in one.rows() {
            links.extend(page.map(|page| page.replace("{name}", &study)));
            rows.push([study, hypothesis, outcome, effect]);
        }
    }
    let mut table = Table::new("", ["study", "hypothesis", "verdict", "effect"], rows).keyed(2);
    table.links = links;
    let blocks = vec![Block::prose(format!("{summary} {about}")), table.into()];
    let data = done.iter().map(|one| json!({"name": one.name, "found": one.data}));
    Document::new("Studies and their verdicts", blocks, data.collect())
}

/// The same as a file to keep and to compare.
pub fn csv(done: &[Done]) -> String {
    let header = "study,hypothesis,claim,verdict,seeds,effect\n".to_owned();
    let line = |row: [String; 6]| row.map(|field| quoted(&field)).join(",") + "\n";
    header + &done.iter().flat_map(Done::rows).map(line).collect::<String>()
}
