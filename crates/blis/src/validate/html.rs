//! `blis validate --report`: one page that needs nothing else.

use super::table::{headline, is_shown, row, summary};
use super::{Found, plot};
use crate::markup::escaped;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:960px;margin:2em auto;padding:0 1em}\
                     table{border-collapse:collapse;margin:1em 0}\
                     td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}\
                     td:first-child,th:first-child{text-align:left}.no{color:#b00020}\
                     svg{max-width:100%;height:auto}";

const COLUMNS: [&str; 9] =
    ["ms", "predicted", "from", "to", "measured", "error", "inside", "second run", "spread"];

/// The page.
pub(super) fn page(found: &Found) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <title>Predictions against measurements</title><style>{STYLE}</style>\n\
         <h1>Predictions against measurements</h1>\n<p>{}.</p>\n",
        escaped(&found.basis)
    );
    for text in summary(found).split("\n\n").filter(|text| !text.is_empty()) {
        add(&mut out, &format!("<p>{}.</p>\n", escaped(text)));
    }
    for compared in &found.compared {
        let name = escaped(&compared.workload);
        add(&mut out, &format!("<h2>{name}</h2>\n<p>{}.</p>\n", escaped(&headline(compared))));
        out.push_str(&plot::svg(compared));
        let header: Vec<String> = COLUMNS.iter().map(|name| format!("<th>{name}</th>")).collect();
        add(&mut out, &format!("<table><tr>{}</tr>\n", header.concat()));
        for cell in compared.cells.iter().filter(|cell| is_shown(cell)) {
            let class = if cell.is_covered() == Some(false) { " class=\"no\"" } else { "" };
            let cells: Vec<String> =
                row(cell).iter().map(|text| format!("<td>{}</td>", escaped(text))).collect();
            add(&mut out, &format!("<tr{class}>{}</tr>\n", cells.concat()));
        }
        out.push_str("</table>\n");
    }
    out.push_str("</html>\n");
    out
}

fn add(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = out.write_str(text);
}
