//! How the engines of measured runs were set, where a folder says so.

use super::table;
use blis_core::math::count;
use blis_scenario::problem::Problem;
use std::path::Path;

/// The file that says so: one line a run, which begins with its name and its workload.
pub const ENGINES: &str = "engines.csv";

/// How an engine was set. What its log shows is not here: the KV blocks, and whether it scheduled
/// asynchronously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// What was served: runs of the same are left out together.
    pub workload: String,
    /// Token budget of a step.
    pub max_num_scheduled_tokens: u32,
    /// Most requests running at once.
    pub max_num_running_reqs: u32,
    /// Tokens of the largest graph that was captured.
    pub max_cudagraph_capture_size: u32,
    /// KV blocks of the CPU tier; 0: it had none.
    pub cpu_blocks: u32,
}

impl Engine {
    /// What the file `engines.csv` beside `steps` says about the run `name`; `None` if there is no
    /// such file, or it does not know the run.
    pub(super) fn beside(steps: &Path, name: &str) -> Result<Option<Engine>, Problem> {
        let path = steps.with_file_name(ENGINES);
        if !path.is_file() {
            return Ok(None);
        }
        let mut names = table::names(&path)?.into_iter().enumerate();
        let Some((at, (_, workload))) = names.find(|(_, (run, _))| run == name) else {
            return Ok(None);
        };
        let rows = table::read(
            &path,
            [
                "max_num_scheduled_tokens",
                "max_num_running_reqs",
                "max_cudagraph_capture_size",
                "cpu_blocks",
            ],
        )?;
        let [tokens, requests, graph, cpu] =
            rows[at].map(|value| u32::try_from(count(value)).unwrap_or(u32::MAX));
        Ok(Some(Engine {
            workload,
            max_num_scheduled_tokens: tokens,
            max_num_running_reqs: requests,
            max_cudagraph_capture_size: graph,
            cpu_blocks: cpu,
        }))
    }
}
