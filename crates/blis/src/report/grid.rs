//! Grids of text: one content, as a table for a terminal or for Markdown.

use crate::report::table::{bold, table};

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// For a terminal of 100 columns.
    pub(crate) fn text(&self) -> String {
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let mut table = table(&header);
        table.add_rows(self.rows.iter().cloned());
        // The last column is padded too.
        let body = table.trim_fmt();
        if self.title.is_empty() {
            return format!("{body}\n");
        }
        format!("{}\n{body}\n", bold(&self.title))
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
    fn long_text_is_folded_at_words() {
        let text = folded(&"word ".repeat(50), 2, 4);
        assert!(text.starts_with("  word word"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
