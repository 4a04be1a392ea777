//! The files of a study's page: the text, and the drawing beside it.

use super::markdown::{self, Links};
use crate::failure::Failure;
use crate::sheet::{Fate, Sheet};
use crate::target::{Kind, Target};
use blis_lab::study::{Findings, Study};
use std::path::{Path, PathBuf};

/// A page on its way.
pub(super) struct Sheets {
    text: Sheet,
    /// Absent if the page is no file, or shows a drawing that is written anyway.
    drawing: Option<Sheet>,
    /// What the page leads to.
    pub(super) links: Links,
}

/// Where the drawing of a page is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drawing<'a> {
    /// Beside the page, written with it.
    Beside,
    /// In this file, which somebody else writes.
    At(&'a Path),
}

/// Where the page of the study `file` goes: to `path`, or into it if it is a folder.
pub(super) fn page_path(path: &Path, file: &Path) -> PathBuf {
    if path.is_dir() { path.join(super::name(file) + ".md") } else { path.to_owned() }
}

impl Sheets {
    /// Opens the page `path` of the study `file` before anything runs.
    pub(super) fn open(
        path: &Path,
        file: &Path,
        drawing: Drawing<'_>,
        fate: Fate,
    ) -> Result<Sheets, Failure> {
        let is_file = match fate {
            Fate::Verified => true,
            Fate::Written => matches!(Target::of(path)?.kind, Kind::File { .. }),
        };
        let text = Sheet::open(path, fate, &[file])?;
        let beside = path.with_extension("svg");
        let shown = match drawing {
            Drawing::Beside if is_file => Some(beside.as_path()),
            Drawing::At(path) if is_file => Some(path),
            _ => None,
        };
        let links = Links {
            file: file.display().to_string(),
            source: markdown::link(path, file).filter(|_| is_file),
            drawing: shown.and_then(|drawing| markdown::link(path, drawing)),
        };
        let drawing = match drawing {
            Drawing::Beside if is_file => Some(Sheet::open(&beside, fate, &[file])?),
            _ => None,
        };
        Ok(Sheets { text, drawing, links })
    }

    /// Writes the page of a study, or says in what those that are there differ.
    pub(super) fn put_study(
        self,
        study: &Study,
        findings: &Findings,
    ) -> Result<Vec<String>, Failure> {
        let page = markdown::page(study, findings, &self.links);
        self.put(&page, || markdown::drawing(study, findings))
    }

    /// Writes a page with its drawing, or says in what those that are there differ.
    pub(super) fn put(
        self,
        page: &str,
        drawing: impl FnOnce() -> String,
    ) -> Result<Vec<String>, Failure> {
        let text = self.text.put(page)?;
        let drawing = self.drawing.map(|sheet| sheet.put(&drawing())).transpose()?.flatten();
        Ok(text.into_iter().chain(drawing).collect())
    }
}
