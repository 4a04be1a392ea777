//! `blis explain --report`: all of it on one page.

use super::{Explained, components, headroom, object, regret, title};
use crate::markup::{escaped, push};
use crate::page::{Figure, drawn, embedded, plots, section, table};
use crate::report::grid::Grid;
use crate::report::json::text;
use crate::study::heading;
use blis_lab::Metric;

/// The page.
pub(super) fn page(found: &Explained<'_>) -> String {
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"faint\">{}</p>\n</header>\n<main>\n",
        escaped(&found.study.question),
        escaped(&title(found))
    );
    let parts = found.parts.iter().map(|(class, parts)| components::time(class, parts));
    section(&mut body, "Where the time went", &tables(parts));
    section(&mut body, "Which components did it", &effects(found));
    section(&mut body, "What is left on the table", &left(found));
    section(&mut body, "Routing decisions", &decisions(found));
    let version = env!("CARGO_PKG_VERSION");
    push(&mut body, format_args!("</main>\n<footer><p>blis {version}</p></footer>"));
    body.push_str(&embedded("findings", &text(&object(found))));
    drawn(&found.study.question, &body)
}

fn tables(grids: impl Iterator<Item = Grid>) -> String {
    grids.map(|grid| table(&grid)).collect()
}

fn effects(found: &Explained<'_>) -> String {
    let mut out = String::new();
    for (metric, shares) in &found.shares {
        out.push_str(&table(&components::effects(found, metric, shares)));
        if !shares.pairs.is_empty() {
            out.push_str(&table(&components::interactions(found, metric, shares)));
        }
        push(&mut out, format_args!("<p>{}</p>", escaped(&components::compound(metric, shares))));
    }
    out
}

fn left(found: &Explained<'_>) -> String {
    let Some(reached) = &found.reached else { return String::new() };
    let mut out = format!("<p class=\"faint\">{}</p>\n", escaped(headroom::ABOUT));
    let figure = |metric: &Metric| {
        let csv = headroom::csv(reached, metric)?;
        Some(Figure {
            kind: "interval",
            title: heading(metric),
            file: format!("left of {}", metric.name()),
            csv,
            about: vec![("unit", heading(metric)), ("names", "who".to_owned())],
            wide: false,
        })
    };
    let figures: Vec<Figure> = found.metrics.iter().filter_map(figure).collect();
    out.push_str(&plots(&figures));
    for metric in &found.metrics {
        let grids = [headroom::gaps(reached, metric), headroom::classes(reached, metric)];
        out.push_str(&tables(grids.into_iter().flatten()));
        if let Some(sentence) = headroom::sentence(reached, metric) {
            push(&mut out, format_args!("<p>{}</p>", escaped(&sentence)));
        }
    }
    out
}

fn decisions(found: &Explained<'_>) -> String {
    let Some(decisions) = &found.decisions else { return String::new() };
    format!(
        "<p class=\"faint\">{}</p>\n{}<p>{}</p>\n",
        escaped(regret::ABOUT),
        table(&regret::grid(decisions)),
        escaped(&regret::sentence(decisions))
    )
}
