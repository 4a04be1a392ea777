"""Tables are those that the command writes, and are read in place."""

from __future__ import annotations

import csv
import gc
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import SHARED_PREFIX, Command

import blis


@pytest.fixture(scope="module")
def result() -> blis.Result:
    return blis.run(
        SHARED_PREFIX,
        num_requests=500,
        total_kv_blocks=1500,
        admission_policy="token-bucket",
        timeline_ms=50,
    )


def rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


def same(value: object, text: str) -> bool:
    if value is None:
        return text == ""
    return float(text) == pytest.approx(value, abs=5e-7) if isinstance(value, float) else (
        str(value) == text
    )


def test_tables_are_the_files_of_the_command(
    result: blis.Result, command: Command, tmp_path: Path
) -> None:
    requests, timeline = tmp_path / "requests.csv", tmp_path / "timeline.csv"
    command(
        "run", str(SHARED_PREFIX), "--num-requests", "500", "--total-kv-blocks", "1500",
        "--admission-policy", "token-bucket", "--timeline-interval-ms", "50",
        "--requests-out", str(requests), "--timeline", str(timeline), "--quiet",
    )  # fmt: skip
    for table, file in [(result.requests(), requests), (result.timeline(), timeline)]:
        ours, theirs = pa.table(table), rows(file)
        assert ours.column_names == list(theirs[0])
        assert len(ours) == len(table) == len(theirs) > 100
        for mine, other in zip(ours.to_pylist(), theirs, strict=True):
            assert all(same(mine[name], other[name]) for name in other), (mine, other)


def test_absent_values_are_absent(result: blis.Result) -> None:
    table = pa.table(result.requests())
    rejected = table.filter(pa.compute.equal(table["status"], "rejected"))
    assert 0 < len(rejected) < len(table), "the gate closes now and then"
    assert rejected["ttft_us"].null_count == rejected["instance"].null_count == len(rejected)
    assert table["ttft_us"].null_count == len(rejected)


def test_readers_see_the_memory_of_the_run(result: blis.Result) -> None:
    once, again = pa.table(result.requests()), pa.table(result.requests())
    for name in once.column_names:
        places = [table[name].chunk(0).buffers() for table in (once, again)]
        addresses = [[b.address for b in buffers if b is not None] for buffers in places]
        assert addresses[0] == addresses[1] != [], name


def test_a_table_outlives_its_run() -> None:
    table = pa.table(blis.run(SHARED_PREFIX, num_requests=100).requests())
    gc.collect()
    assert table["status"].to_pylist() == ["finished"] * 100


def test_pandas_and_polars_read_tables(result: blis.Result) -> None:
    arrow = pa.table(result.requests())
    polars = pl.DataFrame(result.requests())
    pandas = pd.DataFrame.from_arrow(result.requests())
    assert polars.columns == list(pandas.columns) == arrow.column_names
    assert polars["e2e_us"].to_list() == arrow["e2e_us"].to_pylist()
    assert pandas["class"].tolist() == arrow["class"].to_pylist()


def test_the_percentiles_of_a_result_are_those_of_its_requests() -> None:
    done = blis.run(SHARED_PREFIX, num_requests=2000)
    ttft_ms = pl.DataFrame(done.requests())["ttft_us"] / 1000
    assert ttft_ms.quantile(0.99, "linear") == pytest.approx(done.ttft_p99, rel=1e-9)


def test_a_table_tells_what_it_has(result: blis.Result) -> None:
    assert repr(result.requests()).startswith("Table(500 rows; request_id, arrival_us, class")
    schema = pa.schema(result.requests())
    assert schema.field("class").type == pa.large_string()
    assert schema.field("ttft_us").type == pa.float64()
    assert schema.field("input_tokens").type == pa.uint64()


def test_what_was_not_recorded_is_told() -> None:
    done = blis.run(SHARED_PREFIX, num_requests=10)
    with pytest.raises(ValueError, match="timeline_ms=100"):
        done.timeline()
    with pytest.raises(ValueError, match="decisions=True"):
        done.decisions()
    with pytest.raises(ValueError, match=r"legal: a number from 0\.001"):
        blis.run(SHARED_PREFIX, num_requests=10, timeline_ms=0)
    with pytest.raises(blis.ScenarioError, match="samples or more of .* raise `max_gb`"):
        blis.run(SHARED_PREFIX, num_requests=1000, rate=0.01, timeline_ms=0.001)
