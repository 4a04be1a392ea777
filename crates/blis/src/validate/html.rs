//! `blis validate --report`: one page that needs nothing else.

use super::table::{
    BEYOND, BEYOND_NOTE, BEYOND_TITLE, COLUMNS, OVERVIEW, TRANSFER_NOTE, TRANSFER_TITLE, beyond,
    headline, is_shown, overview, row, sentence, summary, transfers,
};
use super::{Found, plot};
use crate::markup::{escaped, push};
use crate::page::document;
use blis_fidelity::validate::Compared;

const TITLE: &str = "Predictions against measurements";

/// How to read the tables of single workloads.
const READING: &str = "Predicted is one replay of the arrivals that were measured; from and to hold \
     nine tenths of the replays by profiles that the measurements allow just as well; inside says \
     whether what was measured is between them; a second run is the same arrivals on another \
     machine. An ITL is the mean gap between the tokens of a request.";

/// Columns of the tables of single workloads that only matter if there was a second run.
const OF_REPEATS: usize = 2;

/// The page.
pub(super) fn page(found: &Found) -> String {
    let mut out = format!("<h1>{TITLE}</h1>\n<p>{}</p>\n", escaped(&sentence(&found.basis)));
    table(&mut out, &OVERVIEW, overview(&found.compared).iter().map(|cells| (cells, "")));
    for text in summary(found).split("\n\n").filter(|text| !text.is_empty()) {
        push(&mut out, format_args!("<p>{}</p>", escaped(&sentence(text))));
    }
    push(&mut out, format_args!("<p class=\"faint\">{READING}</p>"));
    for compared in &found.compared {
        workload(&mut out, compared);
    }
    if !found.transfer.is_empty() {
        push(&mut out, format_args!("<h2>{TRANSFER_TITLE}</h2>\n<p>{TRANSFER_NOTE}</p>"));
        let (columns, rows) = transfers(found);
        table(&mut out, &columns, rows.iter().map(|cells| (cells, "")));
    }
    if !found.beyond.is_empty() {
        push(&mut out, format_args!("<h2>{BEYOND_TITLE}</h2>\n<p>{BEYOND_NOTE}</p>"));
        table(&mut out, &BEYOND, beyond(found).iter().map(|cells| (cells, "")));
    }
    document(TITLE, &out)
}

/// One workload: how its steps and requests fared, their distributions, and the numbers.
fn workload(out: &mut String, compared: &Compared) {
    let name = escaped(&compared.workload);
    push(out, format_args!("<h2>{name}</h2>\n<p>{}</p>", escaped(&sentence(&headline(compared)))));
    out.push_str(&plot::panels(compared));
    let shown = COLUMNS.len() - if compared.repeat.is_some() { 0 } else { OF_REPEATS };
    let cells = compared.cells.iter().filter(|cell| is_shown(cell));
    let rows: Vec<(Vec<String>, &str)> = cells
        .map(|cell| {
            let class = if cell.is_covered() == Some(false) { "no" } else { "" };
            (row(cell)[..shown].to_vec(), class)
        })
        .collect();
    table(out, &COLUMNS[..shown], rows.iter().map(|(cells, class)| (cells, *class)));
}

/// The column of `COLUMNS` that says whether an interval holds.
const INSIDE: &str = "inside";

/// A table; what is `class` of a row is the class of its cell that says whether an interval holds.
fn table<'a>(
    out: &mut String,
    columns: &[impl AsRef<str>],
    rows: impl Iterator<Item = (&'a Vec<String>, &'a str)>,
) {
    let names: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    let head = |name: &&str| format!("<th class=\"n\" scope=\"col\">{}</th>", escaped(name));
    let header: Vec<String> = names.iter().map(head).collect();
    push(out, format_args!("<div class=\"scroll\"><table>\n<tr>{}</tr>", header.concat()));
    for (cells, class) in rows {
        let cell = |(name, text): (&&str, &String)| {
            let class = if *name == INSIDE && !class.is_empty() { "n no" } else { "n" };
            format!("<td class=\"{class}\">{}</td>", escaped(text))
        };
        let cells: Vec<String> = names.iter().zip(cells).map(cell).collect();
        push(out, format_args!("<tr>{}</tr>", cells.concat()));
    }
    out.push_str("</table></div>\n");
}
