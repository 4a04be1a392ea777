//! Grids of text: one content, as a table for a terminal or for Markdown.

use crate::report::table::{bold, table};

/// Columns of a terminal, and the space that would follow the last.
const COLUMNS: usize = 101;
/// Cells wider than this are folded.
const WIDEST: usize = 36;
/// Behind each column.
const PADDING: usize = 3;

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// For a terminal of 100 columns. A grid that is too wide is cut into several below each other,
    /// all with the first column.
    pub(crate) fn text(&self) -> String {
        let one = |columns: &Vec<usize>| {
            let header: Vec<&str> = columns.iter().map(|&at| self.header[at].as_str()).collect();
            let mut table = table(&header);
            for row in &self.rows {
                table.add_row(columns.iter().map(|&at| row.get(at).cloned().unwrap_or_default()));
            }
            // The last column is padded too.
            format!("{}\n", table.trim_fmt())
        };
        let body = self.pieces().iter().map(one).collect::<Vec<String>>().join("\n");
        if self.title.is_empty() { body } else { format!("{}\n{body}", bold(&self.title)) }
    }

    /// The columns of each piece: as many as fit beside the first without folding a number.
    fn pieces(&self) -> Vec<Vec<usize>> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let cells = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            // Headings are folded at words, and so are sentences.
            let words = self.header[column].split(' ').map(|word| word.chars().count());
            cells.min(WIDEST).max(words.max().unwrap_or(0)) + PADDING
        };
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut used = 0;
        for column in 1..self.header.len() {
            if pieces.is_empty() || used + width(column) > COLUMNS {
                pieces.push(vec![0]);
                used = width(0);
            }
            used += width(column);
            pieces.last_mut().expect("just begun").push(column);
        }
        if pieces.is_empty() { vec![(0..self.header.len()).collect()] } else { pieces }
    }

    /// For a Markdown page; all but the first column are numbers.
    pub(crate) fn markdown(&self) -> String {
        self.marked_down("|---:")
    }

    /// For a Markdown page; all columns are words.
    pub(crate) fn markdown_of_words(&self) -> String {
        self.marked_down("|---")
    }

    fn marked_down(&self, column: &str) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = format!("|---{}|\n", column.repeat(self.header.len().saturating_sub(1)));
        let title =
            if self.title.is_empty() { String::new() } else { format!("### {}\n\n", self.title) };
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        title + &line(&self.header) + &rule + &rows
    }
}

/// `text` in lines of at most 100 columns, the first indented by `first` spaces and the others by
/// `others`.
pub(crate) fn folded(text: &str, first: usize, others: usize) -> String {
    let mut lines = vec![" ".repeat(first)];
    for (index, word) in text.split_whitespace().enumerate() {
        let line = lines.last_mut().expect("there is always a line");
        let width = line.chars().count() + 1 + word.chars().count();
        if index == 0 {
            line.push_str(word);
        } else if width <= 100 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(" ".repeat(others) + word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_a_table_in_text_and_in_markdown() {
        let grid = Grid {
            title: "load".to_owned(),
            header: vec!["arm".to_owned(), "n".to_owned()],
            rows: vec![vec!["a|b".to_owned(), "1".to_owned()]],
        };
        assert!(grid.text().contains("a|b"), "{}", grid.text());
        assert_eq!(grid.markdown(), "### load\n\n| arm | n |\n|---|---:|\n| a\\|b | 1 |\n");
    }

    #[test]
    fn a_wide_grid_is_cut_between_columns_and_no_number_is_folded() {
        let number = |n: usize| format!("{n},000.5 ± 12.5");
        let name = "the same gate of a strategy with a long name on round-robin";
        let row = |name: &str| {
            std::iter::once(name.to_owned()).chain((1..=8).map(number)).collect::<Vec<String>>()
        };
        let header = std::iter::once("arm".to_owned())
            .chain((1..=8).map(|n| format!("critical.ttft_p9{n} (ms)")))
            .collect();
        let grid = Grid { title: "x".to_owned(), header, rows: vec![row("base"), row(name)] };
        let text = grid.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!((1..=8).all(|n| text.matches(&number(n)).count() == 2), "{text}");
        assert_eq!(text.matches("base").count(), grid.pieces().len(), "{text}");
        assert!(grid.pieces().len() > 1);
    }

    #[test]
    fn long_text_is_folded_at_words() {
        let text = folded(&"word ".repeat(50), 2, 4);
        assert!(text.starts_with("  word word"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
