//! The program as its users meet it: command lines in, text and exit codes out.

mod bad_input;
mod capacity;
mod evolve;
mod export;
mod fidelity;
mod folders;
mod go;
mod golden;
mod hostile;
mod init;
mod inspect;
mod interrupt;
mod ledger;
mod messages;
mod optimize;
mod outputs;
mod page;
mod perfetto;
mod playground;
mod replay;
mod same;
mod studies;
mod tier;
mod timeline;
mod traces;
mod why;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder to run the program in.
struct Bench {
    folder: TempDir,
}

/// What a run of the program left.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), text).expect("the folder can be written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("the file is there")
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder can be read");
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut files: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        files.sort();
        files
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blis"));
        command.current_dir(self.path()).args(args.split_whitespace()).stdin(Stdio::null());
        command
    }

    /// Runs `blis` with the words of `args`.
    fn blis(&self, args: &str) -> Ran {
        Ran::from(self.command(args).output().expect("the program starts"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Ran {
    /// The result as JSON, without what the clock says.
    #[track_caller]
    fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        let mut value: serde_json::Value = serde_json::from_str(&self.out).expect("JSON");
        let run = value["run"].as_object_mut().expect("an object");
        run.remove("wall_seconds");
        run.remove("cpu_seconds");
        value
    }
}
