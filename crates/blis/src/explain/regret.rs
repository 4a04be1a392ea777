//! What routing decisions were worth: a table, a sentence, JSON.

use super::ranged;
use crate::report::grid::Grid;
use crate::report::table::grouped;
use blis_lab::explain::{Decisions, Mean, Worth};
use blis_lab::verdict::number;
use blis_scenario::json::Fields;
use serde_json::Value;

/// What stands above all of it.
pub(super) const ABOUT: &str = "A sample of the arm's routing decisions, each taken otherwise in a run of its own. Runner-up: \
     how much later first tokens come if the request goes to the next best place by score, its own \
     and those of all others added up; above 0, the choice was right. Hindsight: how much sooner \
     its own came at the best place tried; luck included.";

/// By what made the difference.
pub(super) fn grid(found: &Decisions) -> Grid {
    let row = |because: &str, worth: &Worth| {
        vec![
            because.to_owned(),
            worth.tried.to_string(),
            worth.own.as_ref().map_or_else(|| "-".to_owned(), mean),
            worth.others.as_ref().map_or_else(|| "-".to_owned(), mean),
            format!("{:.0} %", 100.0 * worth.better_elsewhere),
            mean(&worth.regret),
            worth.score_regret.map_or_else(|| "-".to_owned(), number),
        ]
    };
    let mut rows = vec![row("all", &found.all)];
    if found.reasons.len() > 1 {
        rows.extend(found.reasons.iter().map(|(because, worth)| row(because, worth)));
    }
    let header = [
        "because",
        "tried",
        "own at runner-up, ms",
        "others, ms",
        "better elsewhere",
        "hindsight, ms",
        "by score",
    ];
    Grid {
        title: "what routing decisions were worth".to_owned(),
        header: header.map(str::to_owned).into(),
        rows,
    }
}

fn mean(found: &Mean) -> String {
    found.interval.as_ref().map_or_else(|| number(found.mean), ranged)
}

/// What it means, in a few sentences.
pub(super) fn sentence(found: &Decisions) -> String {
    let Decisions { taken, all, .. } = found;
    let mut told = vec![format!(
        "Of {} decisions {} were taken otherwise.",
        grouped(*taken as u64),
        grouped(all.tried as u64)
    )];
    if let (Some(own), Some(others)) = (&all.own, &all.others) {
        let whose = |sign: i8| match sign {
            1 => "right",
            -1 => "wrong",
            _ => "not clearly right or wrong",
        };
        told.push(format!(
            "For the request itself the choice is {} on average ({} ms), for all others together it \
             is {} ({} ms).",
            whose(own.sign()),
            mean(own),
            whose(others.sign()),
            mean(others)
        ));
    }
    let score = match all.score_regret {
        Some(score) if score <= 0.0 => {
            "; by the router's own scores nothing was ever better, as it takes the best".to_owned()
        }
        Some(score) => format!("; by the router's own scores at most {}", number(score)),
        None => String::new(),
    };
    told.push(format!(
        "In hindsight {:.0} % had a better place, worth {} ms a decision{score}.",
        100.0 * all.better_elsewhere,
        mean(&all.regret)
    ));
    told.join(" ")
}

/// For other programs.
pub(super) fn object(found: &Decisions) -> Value {
    let mut fields = Fields::default();
    fields.count("decisions", found.taken as u64);
    fields.value("all", worth(&found.all));
    let mut reasons = Fields::default();
    for (because, of) in &found.reasons {
        reasons.value(because, worth(of));
    }
    fields.value("because", reasons.into_value());
    fields.into_value()
}

fn worth(found: &Worth) -> Value {
    let mut fields = Fields::default();
    fields.count("tried", found.tried as u64);
    fields.number("better_elsewhere", Some(found.better_elsewhere));
    let means = [
        ("runner_up_own_ms", found.own.as_ref()),
        ("runner_up_others_ms", found.others.as_ref()),
        ("regret_ms", Some(&found.regret)),
        ("regret_of_all_ms", Some(&found.regret_of_all)),
    ];
    for (name, mean) in means {
        let Some(mean) = mean else { continue };
        match &mean.interval {
            Some(interval) => fields.value(name, interval),
            None => fields.number(name, Some(mean.mean)),
        }
    }
    fields.number("score_regret_max", found.score_regret);
    fields.into_value()
}
