//! Random command lines, from what the program's help says that there is.

use super::maker::Maker;
use std::path::Path;
use std::process::Command;

/// Values that flags and arguments get, whether they make sense or not.
const VALUES: [&str; 44] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "-0",
    "3.5",
    "0.001",
    "1e3",
    "1e400",
    "nan",
    "inf",
    "4294967296",
    "18446744073709551616",
    "",
    " ",
    "x",
    "ü",
    "\u{202e}",
    "\u{1b}[2J",
    "a=b",
    "[",
    "a;id",
    "true",
    "90%",
    "s.yaml",
    "study.yaml",
    "search.yaml",
    "t.jsonl",
    "l.db",
    "missing.yaml",
    ".",
    "/dev/null",
    "/dev/full",
    "out.csv",
    "out.md",
    "out.html",
    "pa:1,qd:2",
    "weighted",
    "token-bucket[capacity=9]",
    "slo-compound",
    "orthogonal-slo",
    "ttft_p99",
    "one",
];

/// A flag: its name, and the values that it lists if it has a value at all.
struct Flag {
    name: String,
    values: Option<Vec<String>>,
}

/// A command with its flags.
struct Spelling {
    words: Vec<String>,
    flags: Vec<Flag>,
}

/// All commands.
pub(super) struct Grammar(Vec<Spelling>);

impl Grammar {
    /// Asks the program at `path`.
    pub(super) fn ask(path: &Path) -> Result<Grammar, String> {
        let help = |words: &[String]| {
            let output = Command::new(path).args(words).arg("--help").output();
            let output = output.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<String, String>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (mut open, mut known) = (vec![Vec::new()], Vec::new());
        while let Some(words) = open.pop() {
            let text = help(&words)?;
            for command in commands(&text).filter(|command| *command != "help") {
                let mut longer = words.clone();
                longer.push(command.to_owned());
                open.push(longer);
            }
            known.push(Spelling { flags: flags(&text), words });
        }
        if known.len() < 2 {
            return Err(format!("{} --help lists no commands", path.display()));
        }
        Ok(Grammar(known))
    }

    /// A random command line.
    pub(super) fn line(&self, maker: &mut Maker) -> Vec<String> {
        let Spelling { words, flags } = maker.one(&self.0);
        let mut line = words.clone();
        for _ in 0..maker.between(0, 2) {
            line.push((*maker.one(&VALUES)).to_owned());
        }
        for _ in 0..maker.between(0, 5) {
            let Some(Flag { name, values }) = (!flags.is_empty()).then(|| maker.one(flags)) else {
                break;
            };
            line.push(name.clone());
            match values {
                Some(values) if !values.is_empty() && maker.chance(0.8) => {
                    line.push(maker.one(values).clone());
                }
                Some(_) => line.push((*maker.one(&VALUES)).to_owned()),
                None => {}
            }
        }
        line
    }
}

/// The commands that a help text lists.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    listed
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty())
}

/// The flags that a help text lists.
fn flags(help: &str) -> Vec<Flag> {
    let mut flags: Vec<Flag> = Vec::new();
    for line in help.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(at) = words.iter().take(2).position(|word| word.starts_with("--")) {
            let values = words.get(at + 1).filter(|word| word.starts_with('<')).map(|_| Vec::new());
            flags.push(Flag { name: words[at].to_owned(), values });
        }
        let Some((_, listed)) = line.split_once("[possible values: ") else { continue };
        if let Some(Flag { values: Some(values), .. }) = flags.last_mut() {
            values.extend(listed.trim_end_matches(']').split(", ").map(str::to_owned));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_commands_are_read_from_a_help_text() {
        let help = "Runs\n\nCommands:\n  list  All\n  show  One\n\nOptions:\n      --jobs <N>\n          \
                    Parallel\n  -q, --quiet\n      --format <F>\n          [possible values: a, b]\n";
        assert_eq!(commands(help).collect::<Vec<_>>(), ["list", "show"]);
        let flags = flags(help);
        let names: Vec<&str> = flags.iter().map(|flag| flag.name.as_str()).collect();
        assert_eq!(names, ["--jobs", "--quiet", "--format"]);
        assert_eq!(flags[1].values, None);
        assert_eq!(flags[2].values.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    }
}
