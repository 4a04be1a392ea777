//! `blis validate --report`: one page that needs nothing else.

use super::table::{headline, is_shown, row, summary};
use super::{Found, plot};
use crate::markup::escaped;
use crate::page::document;
use std::fmt::Write;

const TITLE: &str = "Predictions against measurements";
const COLUMNS: [&str; 9] =
    ["ms", "predicted", "from", "to", "measured", "error", "inside", "second run", "spread"];

/// The page.
pub(super) fn page(found: &Found) -> String {
    let mut out = format!("<h1>{TITLE}</h1>\n<p>{}.</p>\n", escaped(&found.basis));
    for text in summary(found).split("\n\n").filter(|text| !text.is_empty()) {
        add(&mut out, &format!("<p>{}.</p>\n", escaped(text)));
    }
    for compared in &found.compared {
        let name = escaped(&compared.workload);
        add(&mut out, &format!("<h2>{name}</h2>\n<p>{}.</p>\n", escaped(&headline(compared))));
        out.push_str(&plot::svg(compared));
        let head = |name: &&str| format!("<th class=\"n\">{name}</th>");
        let header: Vec<String> = COLUMNS.iter().map(head).collect();
        add(&mut out, &format!("<div class=\"scroll\"><table><tr>{}</tr>\n", header.concat()));
        for cell in compared.cells.iter().filter(|cell| is_shown(cell)) {
            let class = if cell.is_covered() == Some(false) { " class=\"no\"" } else { "" };
            let one = |text: &String| format!("<td class=\"n\">{}</td>", escaped(text));
            let cells: Vec<String> = row(cell).iter().map(one).collect();
            add(&mut out, &format!("<tr{class}>{}</tr>\n", cells.concat()));
        }
        out.push_str("</table></div>\n");
    }
    document(TITLE, &out)
}

fn add(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = out.write_str(text);
}
