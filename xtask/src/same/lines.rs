//! The command lines that are compared, made from what a build lists and what the project ships.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The project's root, as seen from the folder that the command lines run in.
pub(crate) const ROOT: &str = "project";

/// Flags whose value is a file that is written.
const OUTPUTS: &[&str] = &[
    "--csv",
    "--decisions-out",
    "--out",
    "--requests-out",
    "--results-path",
    "--timeline",
    "--trace-out",
];

/// Studies that are not run, and why.
const LEFT_OUT: &[(&str, &str)] = &[(
    "least-harm-scale",
    "it measures the saturation of three clusters, which takes longer than all other studies",
)];

/// Lines that are written down, each with its first word: `way` for a way to run every scenario, or
/// the ending of what it prints.
fn written() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("lines.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

/// One command line.
pub(crate) struct Line {
    pub(crate) args: Vec<String>,
    pub(crate) stdin: String,
    /// Whether a build may refuse it: parameters are tried one by one, and some need others.
    pub(crate) may_be_refused: bool,
    /// The ending of what it prints.
    printed: &'static str,
}

impl Line {
    /// `printed` is the ending of what is printed: empty if that is for people. A `~` is a space
    /// within an argument.
    pub(crate) fn new(printed: &'static str, command: &str) -> Line {
        let args = command.split_whitespace().map(|word| word.replace('~', " ")).collect();
        Line { args, stdin: String::new(), may_be_refused: false, printed }
    }

    /// The file that what it prints is kept in.
    pub(crate) fn printed(&self, index: usize) -> Option<String> {
        (!self.printed.is_empty()).then(|| format!("{index:03}.{}", self.printed))
    }

    /// All files to compare.
    pub(crate) fn outputs(&self, index: usize) -> Vec<String> {
        let pairs = self.args.windows(2).filter(|pair| OUTPUTS.contains(&pair[0].as_str()));
        self.printed(index).into_iter().chain(pairs.map(|pair| pair[1].clone())).collect()
    }
}

/// What a build says it knows.
pub(crate) struct Lists {
    policies: Value,
    workloads: Vec<String>,
    strategies: Value,
}

impl Lists {
    /// Asks a build.
    pub(crate) fn ask(build: &Path) -> Result<Lists, String> {
        let ask = |what: &str| {
            let output = Command::new(build).args([what, "--format", "json"]).output();
            let output = output.map_err(|error| format!("{}: {error}", build.display()))?;
            serde_json::from_slice::<Value>(&output.stdout)
                .map_err(|error| format!("{} {what}: {error}", build.display()))
        };
        let workloads = names(&ask("workloads")?["workloads"]);
        Ok(Lists { policies: ask("policies")?, workloads, strategies: ask("strategies")? })
    }
}

/// Command lines, and the files that they read beside those of the project.
pub(crate) struct Plan {
    pub(crate) lines: Vec<Line>,
    pub(crate) inputs: Vec<(String, String)>,
}

impl Plan {
    /// All command lines.
    pub(crate) fn new(root: &Path, lists: &Lists) -> Result<Plan, String> {
        let mut plan = Plan { lines: Vec::new(), inputs: Vec::new() };
        plan.scenarios(root)?;
        plan.workloads(&lists.workloads);
        plan.traces(root)?;
        plan.policies(&lists.policies);
        plan.strategies(&lists.strategies);
        plan.studies(root)?;
        for (printed, command) in written().filter(|(first, _)| *first != "way") {
            plan.add(printed, command);
        }
        Ok(plan)
    }

    /// Adds a command line; `@` in it becomes its number.
    fn add(&mut self, printed: &'static str, command: &str) -> &mut Line {
        let number = format!("{:03}", self.lines.len());
        self.lines.push(Line::new(printed, &command.replace('@', &number)));
        self.lines.last_mut().expect("it was just pushed")
    }

    fn scenarios(&mut self, root: &Path) -> Result<(), String> {
        let names = files(&root.join("scenarios"), ".yaml")?;
        for name in &names {
            let scenario = format!("{ROOT}/scenarios/{name}");
            for (_, way) in written().filter(|(first, _)| *first == "way") {
                self.add("json", &format!("run {scenario} --num-requests 300 --format json {way}"));
            }
            self.add("txt", &format!("run {scenario} --num-requests 300 --format blis"));
            self.add("yaml", &format!("export llm-d {scenario} --allow-partial"));
            self.add("txt", &format!("export vllm {scenario}"));
        }
        let paths = names.iter().map(|name| format!("{ROOT}/scenarios/{name}"));
        let all = paths.collect::<Vec<_>>().join(" ");
        self.add("json", &format!("compare {all} --seeds 2 --format json"));
        Ok(())
    }

    fn workloads(&mut self, workloads: &[String]) {
        for name in workloads {
            let run = "--num-requests 200 --num-instances 2 --format json --requests-out @.csv";
            self.add("yaml", &format!("workloads {name}"));
            self.add("json", &format!("run --workload {name} {run}"));
            let trace = format!("{name}.jsonl");
            let few = "--num-requests 150 --rate 9";
            self.add("", &format!("trace generate --workload {name} {few} --out {trace}"));
            self.add("json", &format!("trace inspect {trace} --format json"));
            self.add("json", &format!("run --trace {trace} --format json --requests-out @.csv"));
        }
    }

    /// Traces of other formats.
    fn traces(&mut self, root: &Path) -> Result<(), String> {
        let folder = "crates/workload/tests/it/fixtures";
        for name in files(&root.join(folder), "")? {
            let trace = format!("{ROOT}/{folder}/{name}");
            self.add("json", &format!("trace inspect {trace} --format json"));
            self.add("", &format!("trace convert {trace} --out @.jsonl"));
            self.add("", &format!("trace convert {trace} --speedup 2 --limit 3 --out @.jsonl"));
            self.add("json", &format!("run --trace {trace} --format json"));
        }
        Ok(())
    }

    /// Every policy, where there are conversations and where there are none, and each of its
    /// parameters.
    fn policies(&mut self, kinds: &Value) {
        for kind in items(kinds) {
            for policy in items(&kind["policies"]) {
                let name = text(&policy["name"]);
                let plain = example(name, text(&policy["help"]));
                self.policy(kind, &plain, "orthogonal-slo-32", 80);
                self.policy(kind, &plain, "orthogonal-slo", 200);
                for param in items(&policy["params"]) {
                    let spec = format!("{name}[{}={}]", text(&param["name"]), other(param));
                    self.policy(kind, &spec, "orthogonal-slo-32", 80);
                }
            }
        }
        let document = json!({ "scenario": scenario("orthogonal-slo-32", 80), "seed": 5 });
        self.add("json", "trial").stdin = document.to_string();
    }

    /// A scenario that is short of everything, so that every kind of policy has to decide.
    fn policy(&mut self, kind: &Value, spec: &str, preset: &str, rate: u32) {
        let mut scenario = scenario(preset, rate);
        match text(&kind["yaml_key"]) {
            "routing" => scenario["routing"] = json!({ "policy": spec }),
            "routing.scorers" if spec.starts_with("kv-utilization") => {
                scenario["routing"]["scorers"] = json!(format!("{spec}:1"));
            }
            "routing.scorers" => scenario["routing"]["scorers"] = json!(format!("{spec}:1,kv:1")),
            key => {
                let parts = key.split('.').fold(&mut scenario, |value, part| &mut value[part]);
                *parts = json!(spec);
            }
        }
        if text(&kind["kind"]) == "priority" {
            scenario["scheduler"] = json!("priority-fcfs");
        }
        let name = format!("{:03}.scenario.yaml", self.lines.len());
        self.add("json", &format!("run {name} --format json")).may_be_refused = true;
        self.inputs.push((name, scenario.to_string()));
    }

    fn strategies(&mut self, strategies: &Value) {
        for strategy in items(strategies) {
            let name = text(&strategy["name"]);
            self.add("yaml", &format!("strategies {name}"));
            self.add("yaml", &format!("export llm-d --strategy {name} --allow-partial"));
            self.add("txt", &format!("export vllm --strategy {name}"));
            let run = "run --workload orthogonal-slo --rate 150 --num-requests 300 --format json \
                       --num-instances 3 --total-kv-blocks 900 --kv-cpu-blocks 900 --strategy";
            self.add("json", &format!("{run} {name}"));
            for param in items(&strategy["parameters"]) {
                let last = items(&param["legal"]).last().map(ToString::to_string);
                let value = last.unwrap_or_default().replace('"', "");
                let spec = format!("{name}[{}={value}]", text(&param["name"]));
                self.add("json", &format!("{run} {spec}")).may_be_refused = true;
            }
        }
    }

    /// All studies and searches, made small.
    fn studies(&mut self, root: &Path) -> Result<(), String> {
        for name in files(&root.join("studies"), ".yaml")? {
            if LEFT_OUT.iter().any(|(left_out, _)| name.starts_with(left_out)) {
                continue;
            }
            let path = root.join("studies").join(&name);
            let study = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            if study.contains("\nobjective: [") {
                self.add("json", &format!("optimize {name} --format json"));
            } else if study.contains("\nobjective:") {
                self.add("json", &format!("optimize {name} --format json --out @.yaml"));
            } else {
                self.add("json", &format!("study {name} --format json --csv @.csv"));
                let few = "--seeds 2 --counterfactual-sample 4 --no-oracles";
                // A study of a single arm has nothing to explain.
                let explain = self.add("json", &format!("explain {name} {few} --format json"));
                explain.may_be_refused = true;
            }
            self.inputs.push((name, small(&study)));
        }
        Ok(())
    }
}

fn scenario(preset: &str, rate: u32) -> Value {
    json!({
        "cluster": { "instances": 3 },
        "engine": { "total_kv_blocks": 900, "max_num_running_reqs": 32 },
        "kv_tier": { "cpu_blocks": 1000 },
        "signals": { "snapshot_refresh_interval_us": 20000 },
        "routing": { "policy": "weighted", "scorers": "pa:1,kv:1" },
        "workload": { "preset": preset, "rate": rate, "num_requests": 300 },
    })
}

/// A study with few seeds, few requests and no warm-up to leave out.
fn small(study: &str) -> String {
    let limits = [
        ("num_requests: ", "150"),
        ("seeds: ", "2"),
        ("calls: ", "4"),
        ("warmup: ", "0"),
        ("warmup_s: ", "0"),
    ];
    limits.iter().fold(study.to_owned(), |study, (key, value)| {
        let mut parts = study.split(key);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |done, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let value = if rest.len() < part.len() { value } else { "" };
            format!("{done}{key}{value}{rest}")
        })
    })
}

/// How a policy is written: with members, if its help says that it has some.
fn example(name: &str, help: &str) -> String {
    let members = help.split('`').find(|part| part.starts_with(&format!("{name}(")));
    members.unwrap_or(name).to_owned()
}

/// A legal value of a parameter that is not its default.
fn other(param: &Value) -> String {
    let default = &param["default"];
    if let Some(default) = default.as_bool() {
        return (!default).to_string();
    }
    let number = |key| param[key].as_f64();
    match (default.as_f64(), number("min"), number("max")) {
        (Some(default), Some(min), Some(max)) => {
            let middle = f64::midpoint(default, min);
            let value =
                if middle < default { middle } else { f64::midpoint(default, max.min(10.0)) };
            if param["default"].is_i64() { value.floor().to_string() } else { value.to_string() }
        }
        (None, Some(_), Some(_)) => "500".to_owned(),
        _ => {
            let words = text(&param["legal"]).split('`').skip(1).step_by(2);
            words.filter(|word| *word != text(default)).last().unwrap_or_default().to_owned()
        }
    }
}

/// The names of the files in `folder` with this ending, sorted.
fn files(folder: &Path, ending: &str) -> Result<Vec<String>, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && name.ends_with(ending) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn names(list: &Value) -> Vec<String> {
    items(list).iter().map(|item| text(&item["name"]).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_made_small_wherever_its_numbers_stand() {
        let study =
            "seeds: 5\nmax_seeds: 20\nwarmup: 40s\nworkloads:\n  - {num_requests: 8000, x: 1}\n";
        let expected =
            "seeds: 2\nmax_seeds: 2\nwarmup: 0s\nworkloads:\n  - {num_requests: 150, x: 1}\n";
        assert_eq!(small(study), expected);
        assert_eq!(small("seeds: many\n"), "seeds: many\n");
    }

    #[test]
    fn another_value_of_a_parameter_is_legal_and_not_the_default() {
        let number = |default: Value| json!({ "default": default, "min": 1, "max": 100 });
        assert_eq!(other(&number(json!(4))), "2");
        assert_eq!(other(&number(json!(2.0))), "1.5");
        assert_eq!(other(&number(json!(1.0))), "5.5");
        assert_eq!(other(&number(json!("auto"))), "500");
        assert_eq!(other(&json!({ "default": true })), "false");
        let one_of = json!({ "default": "a", "legal": "one of `a`, `b`" });
        assert_eq!(other(&one_of), "b");
    }

    #[test]
    fn files_that_a_line_writes_are_compared_and_those_that_it_reads_are_not() {
        let line = Line::new("json", "study a.yaml --csv b.csv --ledger c.db");
        assert_eq!(line.outputs(7), ["007.json", "b.csv"]);
        assert!(Line::new("", "run a.yaml").outputs(0).is_empty());
    }

    #[test]
    fn every_policy_of_a_list_is_run_with_each_of_its_parameters() {
        let param = json!({ "name": "k", "default": 4, "min": 0, "max": 9 });
        let policy = json!({ "name": "both", "help": "as in `both(a; b)`", "params": [param] });
        let kind = json!({ "kind": "evict", "yaml_key": "kv_tier.offload", "policies": [policy] });
        let mut plan = Plan { lines: Vec::new(), inputs: Vec::new() };
        plan.policies(&json!([kind]));
        let written: Vec<&str> = plan.inputs.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(written.len(), 3);
        assert!(
            written[0].contains("\"offload\":\"both(a; b)\"") && written[2].contains("both[k=2]")
        );
    }
}
