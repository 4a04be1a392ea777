//! What a study sets, for those who want to read it rather than run it.

use super::patch::{self, Setting};
use super::{Component, Study};
use blis_scenario::yaml::Node;

/// A field of a scenario by its path, and its value as text.
pub type Stated = (String, String);

impl Study {
    /// What its base scenario says; everything else is at its default.
    pub fn base_fields(&self) -> Vec<Stated> {
        stated(&patch::settings(&self.base))
    }

    /// Whether its cells differ in the scenario field at `path`.
    pub fn is_varied(&self, path: &str) -> bool {
        let all = self.levels.iter().flat_map(|factor| &factor.levels);
        all.flat_map(|level| &level.own).any(|(steps, _)| steps.join(".") == path)
    }

    /// What `level` of `factor` sets itself, on top of the base and of its components.
    ///
    /// # Panics
    /// If there is no such factor or level.
    pub fn level_fields(&self, factor: usize, level: usize) -> Vec<Stated> {
        stated(&self.levels[factor].levels[level].own)
    }
}

impl Component {
    /// What it sets.
    pub fn fields(&self) -> Vec<Stated> {
        stated(&self.settings)
    }
}

fn stated(settings: &[Setting]) -> Vec<Stated> {
    settings.iter().map(|(path, value)| (path.join("."), shown(value))).collect()
}

/// A value as it can be written in a file, on one line.
fn shown(value: &Node) -> String {
    value.text().map_or_else(|| value.to_json(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::study::file::study;
    use blis_scenario::yaml;

    #[test]
    fn what_arms_and_swept_fields_set_can_be_told() {
        let text = "
question: q?
base: {cluster: {instances: 2}, routing: {policy: weighted, scorers: 'pa:1'}}
components: {order: {scheduler: sjf}}
arms: [{name: a}, {name: b, with: [order], set: {engine: {block_size: 32}}}]
sweep: {signals.snapshot_refresh_interval_us: [0, 5]}
metrics: [ttft_p99]
";
        let outline = study(&yaml::read_text("s.yaml", text).expect("YAML")).expect("legal");
        let study = outline.study();
        let told = |fields: Vec<super::Stated>| {
            fields.iter().map(|(path, value)| format!("{path}: {value}")).collect::<Vec<_>>()
        };
        assert_eq!(
            told(study.base_fields()),
            ["cluster.instances: 2", "routing.policy: weighted", "routing.scorers: pa:1"]
        );
        assert!(study.level_fields(0, 0).is_empty(), "the base as it is");
        assert_eq!(told(study.level_fields(0, 1)), ["engine.block_size: 32"]);
        assert_eq!(told(study.components[0].fields()), ["scheduler: sjf"]);
        assert_eq!(
            told(study.level_fields(1, 1)),
            ["signals.snapshot_refresh_interval_us: 5"],
            "a swept value sets its field"
        );
    }
}
