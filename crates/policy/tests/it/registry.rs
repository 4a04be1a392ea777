//! What every introduction promises, and that files, names and lists agree.

use blis_core::Values;
use blis_policy::{Entry, kinds};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of policy folders that hold no policy.
const MACHINERY: &[&str] =
    &["knowledge", "mod", "plain", "prefix_index", "router", "seats", "ties", "weights"];

/// The folder of a kind.
fn folder(kind: &str) -> PathBuf {
    let place = match kind {
        "filter" => "routing/filters",
        "scorer" => "routing/scorers",
        "picker" => "routing/pickers",
        other => other,
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(place)
}

fn policy_files(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    files
        .map(|file| file.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("named").to_string_lossy().into_owned())
        .filter(|stem| !MACHINERY.contains(&stem.as_str()))
        .collect()
}

fn camel_case(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').map(word).collect()
}

fn all_entries() -> Vec<(&'static str, Entry)> {
    let entries = kinds().into_iter().map(|kind| (kind.name, kind.entries));
    entries.flat_map(|(kind, list)| list.into_iter().map(move |entry| (kind, entry))).collect()
}

#[test]
fn every_file_of_a_policy_folder_is_listed_under_its_own_name() {
    for kind in kinds() {
        let names: Vec<String> = kind.entries.iter().map(|e| e.name.replace('-', "_")).collect();
        assert!(names.is_sorted(), "{} are not listed by name: {names:?}", kind.title);
        let listed: BTreeSet<String> = names.into_iter().collect();
        assert_eq!(listed, policy_files(&folder(kind.name)), "{}", kind.title);
    }
}

#[test]
fn every_policy_file_has_the_four_headings_in_order_and_the_type_of_its_name() {
    for (kind, entry) in all_entries() {
        let path = folder(kind).join(entry.name.replace('-', "_")).with_extension("rs");
        let text = fs::read_to_string(&path).expect("readable");
        let header: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let places: Vec<Option<usize>> = ["Prefers", "Reads", "Parameters", "Origin"]
            .iter()
            .map(|heading| header.find(&format!("**{heading}**")))
            .collect();
        assert!(places.iter().all(Option::is_some), "{}: {places:?}", path.display());
        assert!(places.is_sorted(), "{}: {places:?}", path.display());
        let declared = format!("pub struct {}", camel_case(entry.name));
        assert!(text.contains(&declared), "{}: no `{declared}`", path.display());
        for param in entry.params {
            let documented = header.contains(param.name) || header.contains("one per class");
            assert!(documented, "{}: `{}` is not in the header", path.display(), param.name);
        }
    }
}

#[test]
fn a_kind_spells_every_name_and_alias_once() {
    for kind in kinds() {
        let spellings: Vec<&str> =
            kind.entries.iter().flat_map(|e| [Some(e.name), e.alias]).flatten().collect();
        let distinct: BTreeSet<&&str> = spellings.iter().collect();
        assert_eq!(distinct.len(), spellings.len(), "{}: {spellings:?}", kind.title);
        for spelling in spellings {
            let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(spelling.chars().all(legal), "`{spelling}`");
        }
    }
}

#[test]
fn every_default_is_a_legal_value() {
    for (_, entry) in all_entries() {
        for param in entry.params {
            let default = param.kind.default_value();
            let parsed = param.kind.parse(&default.to_string());
            assert_eq!(parsed, Some(default), "{}: {}", entry.name, param.name);
        }
        let names: BTreeSet<&str> = entry.params.iter().map(|param| param.name).collect();
        assert_eq!(names.len(), entry.params.len(), "{}: a parameter twice", entry.name);
        assert_eq!(Values::defaults(entry.params).iter().count(), entry.params.len());
    }
}

#[test]
fn what_is_read_only_under_a_setting_names_a_legal_one_and_says_so() {
    let mut conditions = 0;
    for (_, entry) in all_entries() {
        for (param, when) in entry.params.iter().filter_map(|param| Some((param, param.when?))) {
            let names = |other: &&blis_core::Param| other.name == when.param;
            let other = entry.params.iter().find(names);
            let other = other.unwrap_or_else(|| panic!("{}: `{}`", entry.name, when.param));
            let legal = |word: &&str| other.kind.parse(word).is_some();
            assert!(when.is.iter().all(legal) && other.when.is_none(), "{}", entry.name);
            let default = param.kind.default_value().to_string();
            let under = [(when.param, when.is[0]), (param.name, default.as_str())];
            assert!(Values::parse(entry.params, under).is_ok(), "{}: {}", entry.name, param.name);
            conditions += 1;
        }
    }
    // `cpu-weight` of eleven policies, two scales, a share, a bound, a throughput, five targets,
    // two waits, five thresholds.
    assert_eq!(conditions, 28);
}

#[test]
fn a_parameter_that_nothing_reads_is_refused() {
    use blis_policy::{Gate, Guests, PartsText, Routing};
    let router = |policy: &str, scorers: Option<&str>| {
        Routing::new(policy, &[], &PartsText { scorers, ..PartsText::default() }, &Guests::NONE)
    };
    for (scorers, setting) in [
        ("predicted-latency[cpu-weight=0.5]:1", "`knowledge` is `precise`"),
        ("cost-benefit[cpu-weight=0.8]:1", "`knowledge` is `precise`"),
        ("predicted-latency[scale=100]:1", "`normalise` is `inverse`"),
        ("token-load[threshold=9]:1", "`normalise` is `threshold`"),
    ] {
        let error = router("weighted", Some(scorers)).expect_err(scorers).to_string();
        assert!(error.contains(&format!("read only if {setting}")), "{error}");
    }
    let error = router("consistent-hash[load-factor=2]", None).expect_err("unread").to_string();
    assert!(error.contains("read only if `bounded` is `true`"), "{error}");
    assert!(router("consistent-hash[bounded=true,load-factor=2]", None).is_ok());
    assert!(router("weighted", Some("pp[cpu-weight=0.5]:1")).is_ok(), "always read there");
    let gate = |text| Gate::new(text, &[], &Guests::NONE);
    let error = gate("ttft-budget[target-critical=100]").expect_err("unread").to_string();
    assert!(error.contains("read only if `critical` is `true`"), "{error}");
    assert!(gate("ttft-budget[target-critical=100,critical=true]").is_ok());
}

#[test]
fn every_help_is_one_sentence_without_its_full_stop() {
    for (_, entry) in all_entries() {
        let params = entry.params.iter().map(|param| param.help);
        for help in std::iter::once(entry.help).chain(params) {
            assert!(!help.contains('\n') && !help.contains(". "), "{}: {help}", entry.name);
            assert!(!help.ends_with('.') && !help.ends_with(' '), "{}: {help}", entry.name);
            assert!(help.starts_with(|c: char| c.is_uppercase()), "{}: {help}", entry.name);
        }
    }
}
