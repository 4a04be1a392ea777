//! Where documents go: to standard output in a layout, and to pages.

use crate::args::{Layout, ShownArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target::Target;
use blis_report::html::{self, Figures};
use blis_report::terminal::{self, Screen};
use blis_report::{Document, markdown};
use blis_scenario::problems::every;
use blis_scenario::{Problem, Problems};
use std::io::IsTerminal;
use std::path::PathBuf;

/// The first line of a Markdown page.
pub(crate) const MARK: &str = "<!-- Written by `blis`: do not edit. -->\n";
/// Columns of what is no terminal.
const WIDTH: usize = 100;

/// The terminal that standard output is, or a page of 100 columns. `COLUMNS` says otherwise.
fn screen(details: bool) -> Screen {
    let is_terminal = std::io::stdout().is_terminal();
    let found = terminal_size::terminal_size().filter(|_| is_terminal);
    let given = std::env::var_os("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
    let found = found.map(|(width, _)| usize::from(width.0));
    Screen {
        width: given.or(found).unwrap_or(WIDTH),
        colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        details,
    }
}

/// The document in a layout, with or without what follows its answer.
fn text(document: &Document, layout: Layout, details: bool) -> String {
    match layout {
        Layout::Table => terminal::text(document, screen(details)),
        Layout::Markdown => markdown::page(document, None).text,
        Layout::Html => html::page(document, Figures::Scripted),
        Layout::Json => blis_scenario::json::text(&document.data),
    }
}

/// Prints the document in a layout.
pub(crate) fn print(document: &Document, layout: Layout) -> Result<(), Failure> {
    put(document, layout, false)
}

fn put(document: &Document, layout: Layout, details: bool) -> Result<(), Failure> {
    let text = text(document, layout, details);
    match layout {
        Layout::Table => output::print_raw(&text),
        _ => output::print(&text),
    }
}

/// Where a document goes: pages, opened before anything runs, and standard output.
pub(crate) struct Pages {
    files: Vec<(PathBuf, Output)>,
    layout: Layout,
    details: bool,
}

impl Pages {
    /// Opens the pages of `args`.
    pub(crate) fn open(args: &ShownArgs) -> Result<Pages, Problems> {
        Pages::of(&args.report, args.format)
    }

    /// Opens `pages`; what is put there is also printed in `layout`.
    pub(crate) fn of(pages: &[PathBuf], layout: Layout) -> Result<Pages, Problems> {
        let open = |path: &PathBuf| {
            Ok::<_, Problem>((path.clone(), Output::create(&Target::claim("--report", path)?)?))
        };
        Ok(Pages { files: every(pages.iter().map(open))?, layout, details: false })
    }

    /// The same, with what follows the answer printed if `details`.
    pub(crate) fn detailed(self, details: bool) -> Pages {
        Pages { details, ..self }
    }

    /// Writes the document to each page, and prints it.
    pub(crate) fn put(self, document: &Document) -> Result<(), Failure> {
        let (layout, details) = (self.layout, self.details);
        let rest = match self.files.first() {
            Some((page, _)) => format!("{}, or `--tables`", page.display()),
            None => "`--report FILE.html`, or `--tables`".to_owned(),
        };
        self.write(document)?;
        put(document, layout, details)?;
        if layout == Layout::Table && !details && !document.answer.is_empty() {
            output::print(&format!("All verdicts, tables and charts: {rest}\n"))?;
        }
        Ok(())
    }

    /// Writes the document to each page, as Markdown with its drawings beside it if the name ends
    /// in `.md`, else as HTML.
    pub(crate) fn write(self, document: &Document) -> Result<(), Failure> {
        for (path, output) in self.files {
            if path.extension().is_none_or(|ending| ending != "md") {
                output.fill(&html::page(document, Figures::Scripted))?;
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let page = markdown::page(document, Some(&stem));
            for (name, drawing) in &page.drawings {
                Output::whole(&Target::claim("--report", &path.with_file_name(name))?, drawing)?;
            }
            output.fill(&format!("{MARK}{}", page.text))?;
        }
        Ok(())
    }
}
