"""`blis schema`: what ships fits its schema, and what is wrong does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, Command
from jsonschema import Draft7Validator

SHIPPED = {
    "scenario": ROOT / "scenarios",
    "strategy": ROOT / "strategies",
    "study": ROOT / "studies",
    "workload": ROOT / "crates" / "scenario" / "presets",
}


def errors(command: Command, kind: str, file: Any) -> list[str]:
    schema = json.loads(command("schema", kind))
    Draft7Validator.check_schema(schema)
    return [error.message for error in Draft7Validator(schema).iter_errors(file)]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_file_that_ships_fits_its_schema(command: Command, kind: str) -> None:
    files = {path: read(path) for path in sorted(SHIPPED[kind].glob("*.yaml"))}
    assert len(files) > 1
    for path, file in files.items():
        search = "objective" in file or "maximise" in file
        assert errors(command, "search" if search else kind, file) == [], path


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("scenario", "{cluster: {instance: 4}}"),
        ("scenario", "{cluster: {instances: 0}}"),
        ("scenario", "{engine: {preset: vllm-9}}"),
        ("scenario", "{workload: {rate: ninety}}"),
        ("study", "{base: {clusters: 1}}"),
        ("study", "{arms: [{set: {engine: {watermark: 2}}}]}"),
        ("study", "{hypotheses: [{clam: a}]}"),
        ("search", "{budget: {calls: 1}}"),
        ("strategy", "{set: {rooting: random}}"),
        ("workload", "{clients: [{rate_fractions: 1}]}"),
    ],
)
def test_mistakes_do_not_fit(command: Command, kind: str, text: str) -> None:
    assert errors(command, kind, yaml.safe_load(text))


def test_editors_are_offered_names(command: Command) -> None:
    schema = json.loads(command("schema", "scenario"))
    offered = {name: field["anyOf"][0]["enum"] for name, field in schema["properties"].items()
               if "anyOf" in field and "enum" in field["anyOf"][0]}
    assert "H200" in offered["hardware"]
    assert "llm-d-1.0-precise" in offered["strategy"]
    assert "weighted" in offered["routing"]
    assert all(field.get("description") for field in schema["properties"].values())
