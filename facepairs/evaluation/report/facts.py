"""Tables of facts: published results of others, what was measured on, how it was made."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from facepairs.evaluation.report.cells import Table, make_table, number
from facepairs.evaluation.report.data import ReportData
from facepairs.evaluation.report.published import BASELINES, PUBLISHED
from facepairs.evaluation.serialize import to_plain

FACTS = ["what", "value"]


def published_table() -> Table:
    """Return published accuracies of others on LFW's View 2."""
    rows = [
        [row.method, number(row.accuracy), row.trained_on, row.source]
        for row in [*BASELINES, *PUBLISHED]
    ]
    note = (
        "Accuracies on the same pairs, as published or, where noted, measured by this package; not "
        "measured in this run."
    )
    columns = ["method", "accuracy", "trained on", "source"]
    return make_table("published", "Published results on LFW's View 2", note, columns, rows)


def data_table(report: ReportData) -> Table:
    """Return what was measured on."""
    labels = {
        "source": "Pairs from",
        "folder": "Folder of photos",
        "photos_missing": "Photos not in the folder",
        "folder_photos": "Photos in the folder",
        "folder_people": "People in the folder",
        "folder_fingerprint": "SHA-256 of the folder's list",
    }
    rows = []
    for field in fields(report.data):
        value = getattr(report.data, field.name)
        label = labels.get(field.name, field.name.replace("_", " ").capitalize())
        if isinstance(value, Mapping):
            rows += [[f"SHA-256 of {name}", text] for name, text in value.items()]
        elif value is not None:
            rows.append([label, value])
    return make_table("data", "Data", "", FACTS, rows)


def history_table(report: ReportData) -> Table:
    """Return how the figures were made: command, seeds, versions, machine, training."""
    machine = report.machine
    facts: dict[str, object] = {
        "Command": report.command,
        "Created": report.created,
        "facepairs": report.version,
        **{f"Seed: {name}": seed for name, seed in report.seeds.items()},
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "Memory": f"{machine['memory_gb']} GB",
        "System": f"{machine['os']}, Python {machine['python']}",
        "Libraries": _flatten(machine["versions"]),
    }
    for model in report.models:
        facts[f"Scores of {model.name}"] = model.provenance
        facts |= {
            f"{model.name}: {name.replace('_', ' ')}": _flatten(value)
            for name, value in to_plain(model.origin).items()
            if value and name not in ("folds", "ece")
        }
    rows = [[name, str(value)] for name, value in facts.items()]
    return make_table("history", "How this was made", "", FACTS, rows)


def _flatten(value: Any) -> str:
    """Return nested values in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flatten(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_flatten(inner) for inner in value)
    return str(value)
