//! A folder of measured clients.

use super::*;
use std::fs;
use std::path::PathBuf;

const LENGTHS: &str = r#"{"1000": {"input_tokens": "{7: 1}", "output_tokens": "{8: 1}"},
        "0": {"input_tokens": "{}"},
        "300": {"input_tokens": "{100: 0.25, 200.9: 7.5e-1,}", "output_tokens": "{0: 1}"}}"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("data")).expect("it can be made");
        for (name, text) in files {
            fs::write(folder.path().join("data").join(name), text).expect("it can be written");
        }
        Folder(folder)
    }

    fn spec(&self) -> PathBuf {
        self.0.path().join("w.yaml")
    }

    fn read(&self, fields: &str) -> Result<SpecFile, String> {
        let text = format!("version: 2\nservegen_data: {{path: data{fields}}}\n");
        fs::write(self.spec(), text).expect("it can be written");
        let root = format!("{}/", self.0.path().display());
        super::super::read(&self.spec(), Some(MODEL))
            .map(|file| {
                let notes = file.notes.iter().map(|note| note.replace(&root, "")).collect();
                SpecFile { notes, ..file }
            })
            .map_err(|problem| problem.to_string().replace(&root, ""))
    }
}

#[test]
fn a_byte_order_mark_costs_no_row_and_other_bytes_are_refused() {
    let marked = "\u{feff}0,2,1,x\n600,1,1,x\n";
    let files = [("chunk-a-trace.csv", marked), ("chunk-a-dataset.json", LENGTHS)];
    let folder = Folder::new(&files);
    let file = folder.read("").expect("legal");
    assert_eq!(file.mix.clients[0].share.to_bits(), 2.0_f64.to_bits());
    assert_eq!(file.files.len(), 2);
    let path = folder.0.path().join("data/chunk-a-trace.csv");
    fs::write(path, b"0,2,1,\xff\n").expect("it can be written");
    let message = folder.read("").expect_err("not UTF-8");
    assert_eq!(message, "data/chunk-a-trace.csv: not a text file: byte 6 is not UTF-8");
}

#[test]
fn a_chunk_is_a_client_with_its_highest_rate() {
    let folder = Folder::new(&[
        ("chunk-b-trace.csv", "0,1.5,2.0,Gamma,0,0\n600,2.5,0.8,weibull,0,0\n1200,2.5,1,x,0,0\n"),
        ("chunk-b-dataset.json", LENGTHS),
        ("chunk-a-trace.csv", "start,rate,cv,pattern\n0,0,,\n600,0.5,3,exponential\n"),
        ("chunk-a-dataset.json", LENGTHS),
        ("chunk-c-trace.csv", "0,0,0,gamma,0,0\n"),
        ("README", "not a chunk"),
    ]);
    let file = folder.read("").expect("legal");
    assert_eq!(file.rate, Some(RateSpec::Level(Level::PerSecond(3.0))));
    let [a, b] = file.mix.clients.as_slice() else { panic!("{:?}", file.mix.clients) };
    assert_eq!((a.name.as_str(), a.tenant.as_str()), ("servegen-chunk-a", "chunk-a"));
    assert_eq!((a.share, &a.arrival), (0.5, &Arrival::Poisson));
    let weibull = arrival("weibull", Some(0.8)).unwrap();
    assert_eq!((b.share, &b.arrival), (2.5, &weibull));
    let lengths = Length::Empirical(Empirical::new([(100, 0.25), (200, 0.75)]).unwrap());
    assert_eq!(b.input, Input::from(lengths));
    assert_eq!(b.output, Length::Empirical(Empirical::new([(1, 1.0)]).unwrap()));
    let silent = "data/chunk-c-trace.csv: no effect: it sends nothing in the span";
    assert_eq!(file.notes, [silent]);
}

#[test]
fn a_span_chooses_rows_and_windows() {
    let folder = Folder::new(&[
        ("chunk-0-trace.csv", "0,9,2,gamma\n600,2,3,gamma\n1200,5,4,gamma\n"),
        ("chunk-0-dataset.json", LENGTHS),
    ]);
    let file = folder.read(", span_start: 500, span_end: 1200").expect("legal");
    let client = &file.mix.clients[0];
    assert_eq!((client.share, &client.arrival), (2.0, &Arrival::Gamma { cv: 3.0 }));
    let seven = Length::Empirical(Empirical::new([(7, 1.0)]).unwrap());
    assert_eq!(client.input, Input::from(seven));
}

#[test]
fn what_is_malformed_is_refused_with_file_and_line() {
    let refused = |trace: &str, dataset: &str, fields: &str| {
        let files = [("chunk-0-trace.csv", trace), ("chunk-0-dataset.json", dataset)];
        Folder::new(&files).read(fields).expect_err("must be refused")
    };
    let good = "0,9,2,gamma\n";
    assert_eq!(
        refused("0,9,2,gamma\n5,x,2,gamma\n", LENGTHS, ""),
        "data/chunk-0-trace.csv:2:1: rate: found `x`; legal: a number from 0 to 1e12"
    );
    assert_eq!(
        refused("0,9\n", LENGTHS, ""),
        "data/chunk-0-trace.csv:1:1: found 2 columns; legal: at least 4: start, rate, CV, \
             pattern"
    );
    assert_eq!(
        refused("0,9,0,gamma\n", LENGTHS, ""),
        "data/chunk-0-trace.csv:1:1: CV: found `0`; legal: a number from 0.01 to 100"
    );
    assert_eq!(
        refused(good, "{\"0\": 5}", ""),
        "data/chunk-0-dataset.json:1:1: not a data set of ServeGen: invalid type: integer \
             `5`, expected struct Window at line 1 column 7"
    );
    assert_eq!(
        refused(good, "{\"0\": {\"input_tokens\": \"{5: x}\", \"output_tokens\": \"{}\"}}", ""),
        "data/chunk-0-dataset.json: 0.input_tokens: found `5: x`; legal: `tokens: chance`, \
             tokens from 0 to 1073741824"
    );
    assert_eq!(
        refused(good, "{}", ""),
        "data/chunk-0-dataset.json: no window of the span has both `input_tokens` and \
             `output_tokens`"
    );
    assert_eq!(
        refused("0,0,2,gamma\n", LENGTHS, ""),
        "data: no chunk of the folder sends anything in the span; choose another"
    );
    assert_eq!(
        refused(good, LENGTHS, ", span_start: 5, span_end: 5"),
        "w.yaml:2:54: servegen_data.span_end: found `5`; legal: later than `span_start`, 5, or \
             0 for no end"
    );
    assert_eq!(
        Folder::new(&[]).read("").expect_err("an empty folder"),
        "data: found 0; legal: from 1 to 100000 files `chunk-<id>-trace.csv`"
    );
    assert_eq!(
        Folder::new(&[("chunk-0-trace.csv", good)]).read("").expect_err("no data set"),
        "data/chunk-0-dataset.json: cannot read: No such file or directory (os error 2); check \
             the name"
    );
}
