//! The document: what every command builds once, and what all writers write.

use crate::chart::Chart;
use serde::Serialize;
use serde_json::Value;

/// What a command has to tell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Document {
    /// The headline.
    pub title: String,
    /// What a reader needs first, on one screen. Terminals show the rest only if asked to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Block>,
    /// What follows it.
    pub blocks: Vec<Block>,
    /// The same for programs, as the command's `--format json` prints it.
    #[serde(skip)]
    pub data: Value,
    /// What readers of a page can choose from; pages without scripts and others leave it out.
    #[serde(skip)]
    pub explore: Value,
}

/// A part of a document.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// A paragraph; words between backticks are code.
    Prose(String),
    /// Short statements, one a line.
    List(Vec<String>),
    /// Text that somebody wrote for the end of a Markdown page; others leave it out.
    Markdown(String),
    /// Text to be copied as it is, e.g. a command.
    Code(String),
    /// Rows and columns.
    Table(Table),
    /// A picture. Terminals show histograms and timelines, and leave out the others.
    Chart(Chart),
    /// What a study says about a hypothesis.
    Verdict(Card),
    /// What the reader must know, and what to do about it.
    Warning {
        /// What is wrong.
        text: String,
        /// What to do; empty if there is nothing.
        remedy: String,
    },
    /// Blocks under a heading. A group without content is not written.
    Group(Group),
}

/// Blocks under a heading.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The heading.
    pub title: String,
    /// Whether it is detail that pages fold and terminals leave out.
    pub folded: bool,
    /// What stands under it.
    pub blocks: Vec<Block>,
}

/// Rows and columns of text. A column of numbers is aligned to the right.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// What stands above it; may be empty.
    pub title: String,
    /// How many columns, from the first, say what a row is about. They are repeated in every part
    /// of a table that is too wide for one.
    pub keys: usize,
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// Where the first cell of each row leads; empty if nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// What a study says about a hypothesis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Card {
    /// The name of the hypothesis.
    pub name: String,
    /// The word for what the runs say, e.g. `confirmed`.
    pub outcome: &'static str,
    /// What it claims.
    pub claim: String,
    /// Why that should be so; may be empty.
    pub because: String,
    /// What was found, in one sentence.
    pub found: String,
    /// Each effect with its interval and what is claimed of it.
    pub effects: Vec<(String, String)>,
    /// The same as pictures.
    pub charts: Vec<Chart>,
}

impl Card {
    /// Introduces why the claim should be so: no more than an expectation unless it was confirmed.
    pub(crate) fn reason(&self) -> &'static str {
        if self.outcome == "confirmed" { "because" } else { "expected because" }
    }
}

impl Document {
    /// A document with this headline.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>, data: Value) -> Document {
        Document { title: title.into(), blocks, data, ..Document::default() }
    }

    /// The same with this on its first screen.
    #[must_use]
    pub fn answered(self, answer: Vec<Block>) -> Document {
        Document { answer, ..self }
    }

    /// The same with this to choose from.
    #[must_use]
    pub fn explored(self, explore: Value) -> Document {
        Document { explore, ..self }
    }

    /// The document as JSON.
    ///
    /// # Panics
    /// Never: text and numbers can be written as JSON.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("text and numbers can be written as JSON") + "\n"
    }
}

impl Block {
    /// A paragraph.
    pub fn prose(text: impl Into<String>) -> Block {
        Block::Prose(text.into())
    }

    /// Blocks under a heading.
    pub fn group(title: &str, blocks: Vec<Block>) -> Block {
        Block::Group(Group { title: title.to_owned(), folded: false, blocks })
    }

    /// Details under a heading.
    pub fn folded(title: &str, blocks: Vec<Block>) -> Block {
        Block::Group(Group { title: title.to_owned(), folded: true, blocks })
    }

    /// What the reader must know.
    pub fn warning(text: impl Into<String>, remedy: impl Into<String>) -> Block {
        Block::Warning { text: text.into(), remedy: remedy.into() }
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Block {
        Block::Chart(chart)
    }
}

/// Charts or tables as blocks.
pub(crate) fn blocks<T: Into<Block>>(all: impl IntoIterator<Item = T>) -> Vec<Block> {
    all.into_iter().map(Into::into).collect()
}

impl Table {
    /// A table whose first column says what a row is about.
    pub fn new<H: Into<String>, R: Into<Vec<String>>>(
        title: impl Into<String>,
        header: impl IntoIterator<Item = H>,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        Table {
            title: title.into(),
            keys: 1,
            header: header.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().map(Into::into).collect(),
            links: Vec::new(),
        }
    }

    /// The same with so many columns that say what a row is about.
    #[must_use]
    pub fn keyed(self, keys: usize) -> Table {
        Table { keys, ..self }
    }

    /// The same without the columns, keys aside, in which nothing stands.
    #[must_use]
    pub fn without_empty(mut self) -> Table {
        let is_kept = |column: &usize| {
            *column < self.keys || self.rows.iter().any(|row| !row[*column].is_empty())
        };
        let kept: Vec<usize> = (0..self.header.len()).filter(is_kept).collect();
        let pick = |cells: &[String]| kept.iter().map(|&column| cells[column].clone()).collect();
        self.header = pick(&self.header);
        self.rows = self.rows.iter().map(|row| pick(row)).collect();
        self
    }

    /// Whether `column` has numbers.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        let numeric = |text: &String| {
            let first = text.trim_start_matches(['-', '+']).chars().next();
            first.is_none_or(|first| first.is_ascii_digit())
        };
        column >= self.keys && self.rows.iter().all(|row| row.get(column).is_none_or(numeric))
    }
}
