"""The notebook goes from its question to a verdict and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

NOTEBOOK = ROOT / "python" / "examples" / "question_to_verdict.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook, run from its first cell to its last."""
    why = 'what notebooks need is not installed: pip install "blis[notebook]"'
    for piece in ["ipykernel", "matplotlib", "pyarrow", "pandas"]:
        pytest.importorskip(piece, reason=why)
    nbclient = pytest.importorskip("nbclient", reason=why)
    nbformat = pytest.importorskip("nbformat", reason=why)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = str(tmp_path_factory.mktemp("notebook"))
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": folder}})
    client.execute()
    assert list(Path(folder).iterdir()) == [], "it leaves nothing behind"
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_it_has_ten_cells_and_no_output_that_was_kept() -> None:
    nbformat = pytest.importorskip("nbformat", reason="it is not installed: pip install nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert len(notebook.cells) == 10
    assert outputs(notebook) == []


def test_it_ends_with_a_verdict(executed: Any) -> None:
    (printed,) = [out.text for out in outputs(executed) if out.get("name") == "stdout"]
    words = printed.split()
    assert words[0] in {"confirmed", "refuted", "equivalent", "inconclusive"}
    assert "ttft_p99(cached) <= 0.9 * ttft_p99(spread)" in printed


def test_it_shows_a_picture_and_a_result(executed: Any) -> None:
    data = [out.data for out in outputs(executed) if "data" in out]
    assert sum("image/png" in found for found in data) == 1
    assert sum("text/markdown" in found for found in data) == 1, "a result shows itself"


def test_nothing_complains(executed: Any) -> None:
    assert [out for out in outputs(executed) if out.get("name") == "stderr"] == []
