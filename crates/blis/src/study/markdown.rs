//! `blis study --markdown`: a study as a page for people, with a drawing beside it.
//!
//! A page says nothing that differs from run to run: neither times nor versions nor where it was
//! written. So the same study gives the same bytes, and `--verify` can tell whether a page that is
//! kept is still true.

use super::{charts, conditions, grids, notes, verdicts};
use crate::markup::push;
use crate::report::grid::{Grid, folded};
use blis_lab::hypothesis::Hypothesis;
use blis_lab::study::{Findings, Stated, Study};
use blis_lab::verdict::Verdict;
use std::fs;
use std::path::{Path, PathBuf};

/// The first line of every generated page.
pub(super) const MARK: &str = "<!-- Written by `blis study`: change the study, not the page. -->";

/// Where a page stands and what it leads to.
pub(super) struct Links {
    /// The study's file as it was given, for the command.
    pub(super) file: String,
    /// The same as seen from the page; absent if the page is no file.
    pub(super) source: Option<String>,
    /// The drawing as seen from the page, if there is one.
    pub(super) drawing: Option<String>,
}

/// The page of a study.
pub(super) fn page(study: &Study, findings: &Findings, links: &Links) -> String {
    let mut page = head(&study.question, links);
    page.push_str(&judged(study, findings));
    page.push_str(&shown(&grids::heading(&study.metrics[0]), links));
    page.push_str(&discussed(study.discussion.as_deref()));
    page.push_str(&setup(study, findings));
    page.push_str("\n## Numbers\n");
    for grid in grids::measured(study, findings) {
        push(&mut page, format_args!("\n{}", grid.markdown().trim_end()));
    }
    page.push_str(&tail("study", links));
    page
}

/// What the file says besides, if anything.
pub(super) fn discussed(discussion: Option<&str>) -> String {
    discussion.map_or_else(String::new, |text| format!("\n## Discussion\n\n{}\n", text.trim()))
}

/// The title of a page and what it is about.
pub(super) fn head(question: &str, links: &Links) -> String {
    let file = match &links.source {
        Some(source) => format!("[`{}`]({source})", links.file),
        None => format!("`{}`", links.file),
    };
    format!("{MARK}\n# {}\n\nStudy file: {file}.\n", inline(question))
}

/// The drawing of what is called `title`, if the page has one.
pub(super) fn shown(title: &str, links: &Links) -> String {
    let drawing = links.drawing.as_ref();
    drawing.map_or_else(String::new, |at| format!("\n![{}]({at})\n", inline(title)))
}

/// How to run it again.
pub(super) fn tail(command: &str, links: &Links) -> String {
    format!("\n## Run it\n\n```sh\nblis {command} {}\n```\n", links.file)
}

/// The drawing of a study: its first number.
pub(super) fn drawing(study: &Study, findings: &Findings) -> String {
    charts::drawing(study, findings, &study.metrics[0])
}

/// A part for each hypothesis: the claim, why it should hold, what was found.
fn judged(study: &Study, findings: &Findings) -> String {
    if study.hypotheses.is_empty() {
        return "\nIt claims nothing: it only measures.\n".to_owned();
    }
    let mut out = format!("\n## Verdicts\n\nThe study is {}.\n", verdicts::CAUTION);
    let all: Vec<(&Hypothesis, &Verdict)> =
        study.hypotheses.iter().zip(&findings.verdicts).collect();
    for (hypothesis, verdict) in all {
        let Hypothesis { name, text, because, .. } = hypothesis;
        push(&mut out, format_args!("\n### {}: {}\n", inline(name), verdict.outcome.name()));
        push(&mut out, format_args!("- **claim** `{}`", inline(text)));
        if let Some(because) = because {
            push(&mut out, format_args!("- **mechanism** {}", inline(because)));
        }
        push(&mut out, format_args!("- **found** {}", inline(&verdict.why)));
    }
    out
}

/// What was run: the base, and what each arm, workload and swept value sets on top of it.
fn setup(study: &Study, findings: &Findings) -> String {
    let mut out = "\n## Setup\n\nThe base, with everything else at its default:\n".to_owned();
    let base = study.base_fields();
    let lines: Vec<String> = base.iter().map(|(path, value)| format!("{path}: {value}")).collect();
    push(&mut out, format_args!("\n```yaml\n{}\n```", lines.join("\n")));
    let components = study.components.iter();
    let rows: Vec<Vec<String>> =
        components.map(|one| vec![one.name.clone(), fields(&one.fields())]).collect();
    push_table(&mut out, &["component", "sets"], &rows);
    for (index, factor) in study.design.factors.iter().enumerate() {
        let levels = 0..factor.levels.len();
        if factor.name == "arm" {
            let rows = levels.map(|level| {
                let with = study.with(level).join(", ");
                let tests = study.tests(level).unwrap_or_default().to_owned();
                let sets = fields(&study.level_fields(index, level));
                vec![factor.levels[level].clone(), with, sets, tests]
            });
            let rows: Vec<Vec<String>> = rows.collect();
            push_table(&mut out, &["arm", "with", "sets", "tests"], &rows);
        } else if factor.name == "workload" {
            let rows = levels.map(|level| {
                vec![factor.levels[level].clone(), fields(&study.level_fields(index, level))]
            });
            let rows: Vec<Vec<String>> = rows.collect();
            push_table(&mut out, &["workload", "sets"], &rows);
        } else {
            let (name, levels) = (&factor.name, factor.levels.join(", "));
            push(&mut out, format_args!("\n`{name}` is swept over {levels}."));
        }
    }
    push(&mut out, format_args!("\n{}.", conditions(study, findings).trim_end()));
    let notes: Vec<String> =
        notes(study).iter().map(|note| format!("- {}", inline(note))).collect();
    if !notes.is_empty() {
        push(&mut out, format_args!("\n{}", notes.join("\n")));
    }
    out
}

fn fields(fields: &[Stated]) -> String {
    let all: Vec<String> =
        fields.iter().map(|(path, value)| format!("`{path}: {}`", inline(value))).collect();
    all.join(", ")
}

/// A table without the columns in which nothing stands.
fn push_table(out: &mut String, header: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let kept: Vec<usize> = (0..header.len())
        .filter(|&column| column == 0 || rows.iter().any(|row| !row[column].is_empty()))
        .collect();
    let grid = Grid {
        title: String::new(),
        header: kept.iter().map(|&column| header[column].to_owned()).collect(),
        rows: rows
            .iter()
            .map(|row| kept.iter().map(|&column| row[column].clone()).collect())
            .collect(),
    };
    push(out, format_args!("\n{}", grid.markdown_of_words().trim_end()));
}

/// Text on one line.
pub(super) fn inline(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A paragraph in lines of at most 100 columns.
pub(super) fn paragraph(text: &str) -> String {
    format!("\n{}\n", folded(text, 0, 0))
}

/// The path from the folder of the file `page` to the file `to`, if both folders are there.
pub(super) fn link(page: &Path, to: &Path) -> Option<String> {
    let folder = |path: &Path| -> Option<PathBuf> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()
    };
    let (from, target) = (folder(page)?, folder(to)?.join(to.file_name()?));
    let mut up = PathBuf::new();
    let mut base = from.as_path();
    while !target.starts_with(base) {
        up.push("..");
        base = base.parent()?;
    }
    let rest = target.strip_prefix(base).ok()?;
    Some(up.join(rest).to_string_lossy().replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_to_the_page() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("docs/strategies")).expect("folders can be made");
        fs::create_dir(at("studies")).expect("folders can be made");
        let page = at("docs/strategies/a.md");
        assert_eq!(
            link(&page, &at("studies/a b.yaml")).as_deref(),
            Some("../../studies/a%20b.yaml")
        );
        assert_eq!(link(&page, &at("docs/strategies/a.svg")).as_deref(), Some("a.svg"));
        assert_eq!(link(&page, &at("missing/a.yaml")), None);
    }
}
