//! `--shard`: which part of a study this process runs.

use crate::failure::Failure;

/// Part `index`, from 0, of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: usize,
    pub(crate) count: usize,
}

const MOST: usize = 100_000;

impl Shard {
    /// The shard that `text` means: `I/N`, `auto` or `auto/N`.
    pub(crate) fn parse(text: &str) -> Result<Shard, Failure> {
        #[expect(clippy::disallowed_methods, reason = "the binary may read the environment")]
        Shard::read(text, |name| std::env::var(name).ok())
            .map_err(|message| Failure::Input(format!("--shard: found `{text}`; {message}")))
    }

    fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
        let number = |name: &str| -> Result<Option<usize>, String> {
            let Some(text) = variable(name) else { return Ok(None) };
            let bad = |_| format!("`{name}` is `{text}`; legal: a number from 0");
            text.parse().map(Some).map_err(bad)
        };
        let (index, count) = match text.split_once('/') {
            None if text == "auto" => (None, None),
            Some(("auto", count)) => (None, Some(count.parse().ok())),
            Some((index, count)) => (Some(index.parse().ok()), Some(count.parse().ok())),
            None => (Some(None), Some(None)),
        };
        let slurm = || -> Result<Option<usize>, String> {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let task = number("SLURM_ARRAY_TASK_ID")?;
            Ok(task.and_then(|task| Some(task.checked_sub(first)? / step)))
        };
        let index = match index {
            Some(index) => index.ok_or_else(legal)?,
            None => {
                slurm()?.map_or_else(|| number("JOB_COMPLETION_INDEX"), |n| Ok(Some(n)))?.ok_or(
                    "neither `SLURM_ARRAY_TASK_ID` nor `JOB_COMPLETION_INDEX` is set; legal: I/N",
                )?
            }
        };
        let count = match count {
            Some(count) => count.ok_or_else(legal)?,
            None => number("SLURM_ARRAY_TASK_COUNT")?
                .ok_or("`SLURM_ARRAY_TASK_COUNT` is not set, so N is unknown; write `auto/N`")?,
        };
        if count == 0 || count > MOST || index >= count {
            return Err(format!("shard {index} of {count}; {}", legal()));
        }
        Ok(Shard { index, count })
    }

    /// Those of `items` that are part of it: every `count`-th.
    pub(crate) fn of<T: Clone>(self, items: &[T]) -> Vec<T> {
        items.iter().skip(self.index).step_by(self.count).cloned().collect()
    }
}

fn legal() -> String {
    format!("legal: I/N with I from 0 to N - 1 and N at most {MOST}, e.g. `0/4`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<(usize, usize), String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Shard::read(text, value).map(|shard| (shard.index, shard.count))
    }

    #[test]
    fn shards_are_given_or_come_from_arrays_and_jobs() {
        assert_eq!(read("3/4", &[]), Ok((3, 4)));
        let array = [
            ("SLURM_ARRAY_TASK_ID", "14"),
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "3"),
        ];
        assert_eq!(read("auto", &array), Ok((2, 3)));
        assert_eq!(read("auto/8", &[("JOB_COMPLETION_INDEX", "7")]), Ok((7, 8)));
        assert_eq!(read("0/1", &array), Ok((0, 1)), "what is written wins");
    }

    #[test]
    fn what_is_no_shard_is_told() {
        for text in ["", "1", "4/4", "1/0", "-1/4", "a/b", "0/100001", "1/2/3"] {
            let message = read(text, &[]).expect_err(text);
            assert!(message.ends_with("e.g. `0/4`"), "{text}: {message}");
        }
        assert!(read("auto/4", &[]).expect_err("no variable").starts_with("neither `SLURM"));
        let odd = read("auto/4", &[("SLURM_ARRAY_TASK_ID", "abc")]).expect_err("no number");
        assert_eq!(odd, "`SLURM_ARRAY_TASK_ID` is `abc`; legal: a number from 0");
        let lone = read("auto", &[("JOB_COMPLETION_INDEX", "7")]).expect_err("no count");
        assert!(lone.ends_with("write `auto/N`"), "{lone}");
    }

    #[test]
    fn shards_share_everything_out_once() {
        let items: Vec<usize> = (0..103).collect();
        let mut all: Vec<usize> =
            (0..4).flat_map(|index| Shard { index, count: 4 }.of(&items)).collect();
        all.sort_unstable();
        assert_eq!(all, items);
    }
}
