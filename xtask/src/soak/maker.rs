//! Draws: numbers, choices, and policies of the registry with random parameters.

use blis_core::math::{float, ln, pow};
use blis_core::random::Purpose;
use blis_core::{Dice, ParamKind};
use blis_policy::{Entry, Kind, Needs, kinds};
use std::collections::BTreeSet;

/// Makes one world.
pub(super) struct Maker {
    dice: Dice,
    kinds: Vec<Kind>,
    /// What the world has, for the table of features.
    pub(super) tags: BTreeSet<String>,
}

impl Maker {
    pub(super) fn new(seed: u64, number: u64) -> Maker {
        let dice = Dice::new(seed, Purpose::Sampling, number);
        Maker { dice, kinds: kinds(), tags: BTreeSet::new() }
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.dice.unit() < share
    }

    /// The same, with a tag if it comes true.
    pub(super) fn has(&mut self, tag: &str, share: f64) -> bool {
        let has = self.chance(share);
        if has {
            self.tag(tag);
        }
        has
    }

    pub(super) fn tag(&mut self, tag: &str) {
        self.tags.insert(tag.to_owned());
    }

    /// A whole number, both ends included.
    pub(super) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.dice.below(most - least + 1)
    }

    pub(super) fn seed(&mut self) -> u64 {
        self.dice.bits() >> 12
    }

    /// A number by its logarithm, with three digits.
    pub(super) fn scaled(&mut self, least: f64, most: f64) -> f64 {
        let drawn = least * pow(most / least, self.dice.unit());
        let unit = pow(10.0, (ln(drawn) / ln(10.0)).floor() - 2.0);
        ((drawn / unit).round() * unit).clamp(least, most)
    }

    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.dice.below(of.len())]
    }

    /// A policy of `kind` that `allowed` lets pass: its text, and what it reads.
    pub(super) fn policy(&mut self, kind: &str, allowed: &dyn Fn(&str) -> bool) -> (String, Needs) {
        let all = &self.kinds.iter().find(|other| other.name == kind).expect("a kind").entries;
        let entries: Vec<Entry> = all.iter().filter(|entry| allowed(entry.name)).copied().collect();
        let entry = *self.one(&entries);
        self.tag(&format!("{kind} {}", entry.name));
        if ["all-of", "any-of"].contains(&entry.name) {
            let alone = ["all-of", "any-of", "reject-all", "flow-control"];
            let members: Vec<String> = (0..self.between(1, 3))
                .map(|_| self.policy(kind, &|name| !alone.contains(&name)).0)
                .collect();
            return (format!("{}({})", entry.name, members.join("; ")), entry.needs);
        }
        let mut given: Vec<String> = Vec::new();
        if self.chance(0.5) {
            // What another parameter decides about is left alone.
            for param in entry.params.iter().filter(|param| param.when.is_none()) {
                if self.chance(0.4) {
                    given.push(format!("{}={}", param.name, self.value(&param.kind)));
                }
            }
        }
        let given = if given.is_empty() { String::new() } else { format!("[{}]", given.join(",")) };
        (format!("{}{given}", entry.name), entry.needs)
    }

    /// A legal value: an end of the range, or one within a factor of ten of the default.
    fn value(&mut self, kind: &ParamKind) -> String {
        match *kind {
            ParamKind::Float { min, max, default } | ParamKind::Log { min, max, default } => {
                match self.between(0, 9) {
                    0 => min.to_string(),
                    1 => max.to_string(),
                    _ => self.near(default, min, max).to_string(),
                }
            }
            ParamKind::Int { min, max, default } => {
                let near = self.near(float(default), float(min), float(max)).round();
                if self.chance(0.1) { min.to_string() } else { near.to_string() }
            }
            ParamKind::IntOrAuto { min, max } => {
                if self.chance(0.3) {
                    return "auto".to_owned();
                }
                self.scaled(float(min), float(max.min(5_000))).round().to_string()
            }
            ParamKind::Flag { .. } => self.chance(0.5).to_string(),
            ParamKind::Choice { options } => (*self.one(options)).to_owned(),
            ParamKind::Formula { default, .. } => default.to_owned(),
        }
    }

    fn near(&mut self, default: f64, min: f64, max: f64) -> f64 {
        let centre = default.max(max.min(1.0) * 0.01);
        self.scaled(centre / 10.0, centre * 10.0).clamp(min, max)
    }
}
