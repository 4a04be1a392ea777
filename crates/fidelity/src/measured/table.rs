//! Tables of numbers in CSV files: the columns that are wanted, by name.
//!
//! Such files are written by programs: no quotes, a header, the same columns in every row. Other
//! columns may hold anything.

use blis_scenario::input;
use blis_scenario::problem::{Place, Problem, hint, quoted};
use blis_scenario::yaml;
use std::path::Path;
use std::sync::Arc;

/// The most bytes of one file: a day of steps.
const LARGEST_FILE: u64 = 1 << 30;

/// The most that a cell may say: ten years in microseconds, and more than any count.
const LARGEST: f64 = 315_360_000_000_000.0;

/// The rows of the file `path`, each the values of `columns` in their order.
pub(super) fn read<const N: usize>(
    path: &Path,
    columns: [&'static str; N],
) -> Result<Vec<[f64; N]>, Problem> {
    parse(&path.display().to_string(), &text(path)?, columns)
}

/// The same if the file has the last of `columns`.
pub(super) fn read_if<const N: usize>(
    path: &Path,
    columns: [&'static str; N],
) -> Result<Option<Vec<[f64; N]>>, Problem> {
    let text = text(path)?;
    let header = text.lines().next().unwrap_or_default();
    if !header.split(',').any(|name| Some(&name.trim()) == columns.last()) {
        return Ok(None);
    }
    parse(&path.display().to_string(), &text, columns).map(Some)
}

/// The first two cells of every row of the file `path`, as texts.
pub(super) fn names(path: &Path) -> Result<Vec<(String, String)>, Problem> {
    let text = text(path)?;
    let rows = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let first = |line: &str| {
        let mut cells = line.split(',').map(|cell| cell.trim().to_owned());
        (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
    };
    Ok(rows.map(first).collect())
}

fn text(path: &Path) -> Result<String, Problem> {
    let name = path.display().to_string();
    let unreadable = |error: &std::io::Error| Problem::unreadable(&name, error);
    let meta = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if meta.is_dir() {
        return Err(Problem::of_file(&name, "cannot read: this is a directory; name a CSV file"));
    }
    if meta.len() > LARGEST_FILE {
        let message = format!("the file has {} bytes; at most {LARGEST_FILE} are read", meta.len());
        return Err(Problem::of_file(&name, message));
    }
    let bytes = input::read(path).map_err(|error| unreadable(&error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::of_file(&name, format!("not a text file: byte {at} is not UTF-8"))
    })
}

fn parse<const N: usize>(
    name: &str,
    text: &str,
    columns: [&'static str; N],
) -> Result<Vec<[f64; N]>, Problem> {
    let mut lines = (1..).zip(text.lines());
    let header: Vec<&str> = match lines.next() {
        Some((_, line)) => line.split(',').map(str::trim).collect(),
        None => return Err(Problem::of_file(name, "the file is empty; write a header and rows")),
    };
    let file: Arc<str> = name.into();
    let place = |line, column| Place::File { file: file.clone(), line, column };
    let mut at = [0; N];
    for (at, column) in at.iter_mut().zip(columns) {
        *at = header.iter().position(|name| *name == column).ok_or_else(|| {
            let message = format!("the header lacks it{}", hint(column, header.iter().copied()));
            Problem::new(place(1, 1), column, message)
        })?;
    }
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != header.len() {
            let message = format!("found {} values; legal: {}", cells.len(), quoted(&header));
            return Err(Problem::new(place(number, 1), "", message));
        }
        let mut row = [0.0; N];
        for ((value, &at), column) in row.iter_mut().zip(&at).zip(columns) {
            let legal = |value: &f64| (0.0..=LARGEST).contains(value);
            *value = yaml::float(cells[at]).filter(legal).ok_or_else(|| {
                let before: usize = cells[..at].iter().map(|cell| cell.len() + 1).sum();
                let message = format!("found `{}`; legal: a number, not negative", cells[at]);
                Problem::new(place(number, before as u64 + 1), column, message)
            })?;
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(Problem::of_file(name, "the file has a header and no rows"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_columns_are_found_by_name_in_any_order() {
        let text = "kind,b,a\nx,2,1\n\ny,4.5,3\n";
        assert_eq!(parse("f", text, ["a", "b"]), Ok(vec![[1.0, 2.0], [3.0, 4.5]]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let refuses = |text: &str| parse("f", text, ["a", "b"]).expect_err("bad").to_string();
        assert_eq!(refuses(""), "f: the file is empty; write a header and rows");
        assert_eq!(refuses("a,b\n"), "f: the file has a header and no rows");
        assert!(refuses("a,x\n1,2").starts_with("f:1:1: b: the header lacks it"));
        assert_eq!(refuses("a,b\n1"), "f:2:1: found 1 values; legal: `a`, `b`");
        assert_eq!(refuses("b,a\n12,-1"), "f:2:4: a: found `-1`; legal: a number, not negative");
        assert!(refuses("a,b\n1,x").contains("found `x`"));
        assert!(refuses("a,b\n1,inf").contains("found `inf`"));
    }
}
