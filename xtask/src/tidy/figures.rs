//! Figures that people quote from studies are those that a run printed.
//!
//! `blis study --results FOLDER --verify` compares the committed results with those of the studies.
//! Pages written by hand quote them, as `0.415 (0.405 to 0.424)`: each such figure must be among
//! the results, so that no old number is left when a study gives a new one.

use super::{Finding, Rule};
use crate::tree::{File, Tree};

/// What runs printed: the results of all studies, and those with a trace that does not ship.
const PRINTED: [&str; 2] = ["docs/strategies/results.csv", "docs/validation/mooncake.md"];

/// The files that quote them.
const QUOTING: [&str; 4] = [
    "README.md",
    "docs/strategies/synthesis.md",
    "docs/validation/mechanisms.md",
    "docs/validation/precise-prefix.md",
];

/// Quoted figures were printed by a run.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let printed: Vec<&File> = PRINTED.iter().filter_map(|path| tree.file(path)).collect();
    let mut findings = Vec::new();
    for file in QUOTING.iter().filter_map(|path| tree.file(path)) {
        for (index, line) in file.text.lines().enumerate() {
            for figure in figures(line) {
                if !printed.iter().any(|file| file.text.contains(figure)) {
                    let message = format!("no study gave `{figure}`: correct it");
                    findings.push(Finding::new(Rule::Figures, &file.path, index + 1, message));
                }
            }
        }
    }
    findings
}

/// All `A (B to C)` in a line, where each is a number.
fn figures(line: &str) -> Vec<&str> {
    let figure = |(open, _): (usize, &str)| {
        let close = open + line[open..].find(')')?;
        let (low, high) = line[open + 2..close].split_once(" to ")?;
        let number = line[..open].trim_end_matches(" %");
        let start = number.rfind([' ', '|']).map_or(0, |at| at + 1);
        let parts = [&line[start..open], low, high];
        parts.iter().all(|part| is_number(part)).then(|| &line[start..=close])
    };
    line.match_indices(" (").filter_map(figure).collect()
}

fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']).trim_end_matches(" %");
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{accepts, refuses};

    const PAGE: (&str, &str) = (
        "docs/strategies/results.csv",
        "study,hypothesis,claim,verdict,seeds,effect\na,b,c,confirmed,5,x 0.415 (0.405 to 0.424)\n",
    );

    #[test]
    fn a_figure_that_no_study_gave_is_found() {
        let old = ("README.md", "# x\n| TTFT | 0.419 (0.405 to 0.433) |\n");
        refuses(
            check,
            &[old, PAGE],
            Rule::Figures,
            "README.md:2: no study gave `0.419 (0.405 to 0.433)`",
        );
        let itself = ("docs/strategies/synthesis.md", "better by -38.6 (-40.4 to -36.7)\n");
        refuses(check, &[itself, PAGE], Rule::Figures, "`-38.6 (-40.4 to -36.7)`");
        let by_hand = ("docs/other.md", "0.9 (0.8 to 1.0)\n");
        let quoted = ("README.md", "0.9 (0.8 to 1.0)\n");
        refuses(check, &[by_hand, quoted], Rule::Figures, "`0.9 (0.8 to 1.0)`");
    }

    #[test]
    fn figures_of_results_and_other_words_in_brackets_are_fine() {
        let text = "0.415 (0.405 to 0.424) of it, and 8 (from 4 to 16) instances (8 to be exact)\n";
        accepts(check, &[("README.md", text), PAGE]);
        accepts(check, &[("docs/other.md", "0.9 (0.8 to 1.0)\n"), PAGE]);
    }

    #[test]
    fn every_figure_of_a_line_is_looked_at() {
        let line =
            "| a | 0.415 (0.405 to 0.424) | 1,946 (1,906 to 1,985) ms | -3.4 % (-4.9 % to 1 %) |";
        let all = figures(line);
        assert_eq!(all[..2], ["0.415 (0.405 to 0.424)", "1,946 (1,906 to 1,985)"]);
    }
}
