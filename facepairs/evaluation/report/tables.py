"""The tables of a report: for the page, for CSV files and for Markdown alike."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Numbers = Mapping[str, Any]
Value = str | int | float | None


class Cell(NamedTuple):
    """What people read, and the bare value that sorts and goes into a CSV file."""

    text: str
    value: Value

    @property
    def is_number(self) -> bool:
        """Whether it is set to the right."""
        return isinstance(self.value, int | float)


class Table(NamedTuple):
    """A table with a name for files and elements; `note` is said above it."""

    key: str
    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def word(text: Any) -> Cell:
    """Give a text."""
    return Cell(str(text), str(text))


def count(value: int) -> Cell:
    """Give a whole number, thousands apart."""
    return Cell(f"{value:,}", value)


def rate(value: float | None, missing: str = "") -> Cell:
    """Give a share in percent."""
    return Cell(missing, None) if value is None else Cell(f"{100 * value:.2f} %", value)


def figure(value: float | None, digits: int = 4) -> Cell:
    """Give a number with some digits."""
    return Cell("", None) if value is None else Cell(f"{value:.{digits}f}", value)


def percent_interval(interval: Sequence[float] | None) -> Cell:
    """Give an interval of shares in percent, sorted by its middle."""
    if interval is None:
        return Cell("", None)
    low, high = interval
    return Cell(f"{100 * low:.2f} to {100 * high:.2f}", (low + high) / 2)


def p_value(value: float) -> Cell:
    """Give a p-value; what is below a float's or a reader's care is said so."""
    return Cell("< .0001" if value < 1e-4 else f"{value:.4f}", value)


def accuracy_text(summary: Numbers) -> str:
    """Give the accuracy as a headline has it: with the folds' standard error, or in percent."""
    error = summary.get("accuracy_standard_error")
    head = f"{100 * summary['accuracy']:.2f} %"
    return head if error is None else f"{head} ± {100 * error:.2f}"


def accuracy_note(summary: Numbers) -> str:
    """Say what the interval of the headline is."""
    low, high = summary["accuracy_interval"]
    interval = f"95 % interval {100 * low:.2f} to {100 * high:.2f}"
    if summary.get("accuracy_standard_error") is None:
        return interval
    return f"mean ± standard error of {len(summary['folds'])} folds; {interval}"


def models_table(numbers: Numbers) -> Table:
    """Give the verifiers side by side."""
    rows = []
    for model in numbers["models"]:
        summary = model["summary"]
        tars = [_tar(tar) for tar in summary["tar_at_far"].values()]
        rows.append(
            [
                word(model["name"]),
                Cell(accuracy_text(summary), summary["accuracy"]),
                percent_interval(summary["accuracy_interval"]),
                figure(summary["auc"]),
                rate(summary["eer"]),
                *tars,
                figure(summary["ece"]),
            ]
        )
    fars = [f"TAR at FAR {far}" for far in numbers["models"][0]["summary"]["tar_at_far"]]
    columns = ["verifier", "accuracy", "95 % interval", "AUC", "EER", *fars, "ECE"]
    return Table("verifiers", "Verifiers", "All on the same pairs.", columns, rows)


def _tar(tar: Numbers) -> Cell:
    return rate(tar["tar"], "too few pairs")


def tests_table(comparison: Numbers) -> Table:
    """Give what tells every two verifiers apart."""
    rows = []
    for test in comparison["tests"]:
        auc = test["auc"]
        row = [
            word(f"{test['first']} - {test['second']}"),
            Cell(f"{100 * test['accuracy_difference']:+.2f} %", test["accuracy_difference"]),
            count(test["only_first_right"]),
            count(test["only_second_right"]),
            p_value(test["p"]),
            p_value(test["p_adjusted"]),
            _gap(auc, 1),
        ]
        rows.append(row + [_gap(gap, 100) for gap in test["tar_at_far"].values()])
    fars = [f"TAR at FAR {far}, %" for far in comparison["tests"][0]["tar_at_far"]]
    columns = ["first - second", "accuracy", "only first right", "only second right"]
    columns += ["p (McNemar)", "p (Holm)", "AUC", *fars]
    note = (
        f"Differences on the same {comparison['pairs']:,} pairs, in parentheses 95 % intervals of "
        f"{comparison['draws']:,} bootstrap draws. McNemar's test is exact and two-sided; Holm's "
        "p allows for the number of comparisons. Pairs are taken for independent: those that share "
        "people are less so, and real doubt is somewhat larger."
    )
    return Table("differences", "Differences", note, columns, rows)


def _gap(gap: Numbers, scale: int) -> Cell:
    digits = 4 if scale == 1 else 2
    low, high = (f"{scale * end:+.{digits}f}" for end in gap["interval"])
    return Cell(f"{scale * gap['difference']:+.{digits}f} ({low} to {high})", gap["difference"])


def figures_table(model: Numbers, key: str) -> Table:
    """Give a verifier's figures with their intervals."""
    summary = model["summary"]
    auc_low, auc_high = summary["auc_interval"]
    rows = [
        [
            word("Accuracy"),
            Cell(accuracy_text(summary), summary["accuracy"]),
            percent_interval(summary["accuracy_interval"]),
        ],
        *(
            [word(name), rate(summary[key]), percent_interval(summary[f"{key}_interval"])]
            for name, key in (("FMR: false accepts", "fmr"), ("FNMR: false rejects", "fnmr"))
        ),
        [
            word("AUC"),
            figure(summary["auc"]),
            Cell(f"{auc_low:.4f} to {auc_high:.4f}", summary["auc"]),
        ],
        [word("EER"), rate(summary["eer"]), Cell("", None)],
    ]
    for far, tar in summary["tar_at_far"].items():
        interval = percent_interval(tar.get("tar_interval"))
        reason = Cell(tar.get("reason") or "", None)
        rows.append(
            [word(f"TAR at FAR {far}"), _tar(tar), interval if tar["tar"] is not None else reason]
        )
    rows.append([word("ECE: calibration error"), figure(summary["ece"]), Cell("", None)])
    return Table(f"figures-{key}", "Figures", "", ["figure", "value", "95 % interval"], rows)


def thresholds_table(model: Numbers, key: str) -> Table:
    """Give thresholds with what they do."""
    rows = []
    for row in model["thresholds"]:
        if row["threshold"] is None:
            empty = [Cell("", None)] * 4
            cells = [Cell("none", None), *empty[:3], Cell(row["reason"], None)]
        else:
            low, high = row["threshold"], row["threshold_high"]
            text = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}"
            cells = [Cell(text, low)]
            for name in ("fmr", "fnmr"):
                cells += [rate(row[name]), percent_interval(row[f"{name}_interval"])]
        rows.append([word(row["name"]), *cells, word(row["set_by"])])
    columns = ["threshold", "score", "FMR", "95 %", "FNMR", "95 %", "chosen by"]
    note = "What each threshold does on these pairs; rates in percent with 95 % intervals."
    return Table(f"thresholds-{key}", "Thresholds", note, columns, rows)


def folds_table(model: Numbers, key: str) -> Table:
    """Give the folds one by one."""
    made = {row["fold"]: row for row in model["about"].get("folds", [])}
    rows = []
    for row in model["folds"]:
        told = made.get(row["fold"], {})
        people = told.get("people", {}).get("training")
        rows.append(
            [
                count(row["fold"]),
                rate(row["accuracy"]),
                count(row["false_accepts"]),
                count(row["false_rejects"]),
                count(row["pairs"]),
                figure(row["threshold"]),
                Cell("", None) if people is None else count(people),
            ]
        )
    columns = ["fold", "accuracy", "false accepts", "false rejects", "pairs", "threshold"]
    columns.append("people trained on")
    return Table(f"folds-{key}", "Folds", "", columns, rows)


def quality_table(model: Numbers, key: str) -> Table:
    """Give the errors by what the photos are like."""
    rows = [
        [
            word(f"{row['measure']} ({row['unit']})"),
            Cell(row["label"], row["third"]),
            Cell(f"{row['low']:.3g} to {row['high']:.3g}", row["low"]),
            count(row["genuine_pairs"] + row["impostor_pairs"]),
            rate(row["fmr"]),
            percent_interval(row["fmr_interval"]),
            rate(row["fnmr"]),
            percent_interval(row["fnmr_interval"]),
        ]
        for row in model["quality"]
    ]
    columns = ["quality", "third", "from, to", "pairs", "FMR", "95 %", "FNMR", "95 %"]
    return Table(f"quality-{key}", "Errors by image quality", "", columns, rows)


def people_table(model: Numbers, key: str) -> Table:
    """Give the people with most errors."""
    people = model["people"]
    rows = [
        [
            word(row["person"].replace("_", " ")),
            count(row["errors"]),
            rate(row["error_share"]),
            Cell(f"{row['false_rejects']} of {row['genuine_pairs']}", row["false_rejects"]),
            Cell(f"{row['false_accepts']} of {row['impostor_pairs']}", row["false_accepts"]),
        ]
        for row in people["rows"]
    ]
    note = f"{people['people_with_errors']:,} of {people['people']:,} people have part in an error"
    if people["half_of_errors_on"]:
        note += f"; half of the errors show one of {people['half_of_errors_on']:,} people"
    note += ". An impostor pair counts for both its people."
    columns = ["person", "errors", "of the person's pairs", "false rejects", "false accepts"]
    return Table(f"people-{key}", "Errors by person", note, columns, rows)


def published_table(numbers: Numbers) -> Table:
    """Give others' published figures, marked as such."""
    published = numbers["published"]
    rows = [
        [word(row["method"]), figure(row["accuracy"]), word(row["trained_on"]), word(row["source"])]
        for row in [*published["baselines"], *published["rows"]]
    ]
    note = (
        "Accuracies on LFW's View 2, as published, or as measured by this package where it says "
        "so; they were not measured in this run."
    )
    if not published["drawn"]:
        note += " These pairs are others, so the figures here cannot be set against them."
    columns = ["method", "accuracy", "trained on", "source"]
    return Table("published", "For orientation", note, columns, rows)


def data_table(numbers: Numbers) -> Table:
    """Give what was measured on."""
    names = {"source": "Pairs from", "folder": "Folder of photos", "sha256": "SHA-256"}
    rows = []
    for key, value in numbers["data"].items():
        label = names.get(key, key.replace("_", " ").capitalize())
        if isinstance(value, dict):
            rows += [[word(f"{label} of {name}"), word(text)] for name, text in value.items()]
        elif value is not None:
            rows.append([word(label), count(value) if isinstance(value, int) else word(value)])
    return Table("data", "Data", "", ["what", "value"], rows)


def origin_table(numbers: Numbers) -> Table:
    """Give how the figures came about: command, seeds, versions, machine."""
    machine = numbers["machine"]
    rows = [
        [word("Command"), word(numbers["command"])],
        [word("Made"), word(numbers["created"])],
        [word("facepairs"), word(numbers["version"])],
    ]
    rows += [[word(f"Seed: {name}"), word(seed)] for name, seed in numbers["seeds"].items()]
    rows += [
        [word("Processor"), word(f"{machine['cpu']}, {machine['cores']} cores")],
        [word("Memory"), word(f"{machine['memory_gb']} GB")],
        [word("System"), word(f"{machine['os']}, Python {machine['python']}")],
    ]
    rows += [[word(name), word(version)] for name, version in machine["versions"].items()]
    for model in numbers["models"]:
        rows += [
            [word(f"{model['name']}: {key.replace('_', ' ')}"), word(_flat(value))]
            for key, value in model["about"].items()
            if value and key != "folds"
        ]
    return Table("origin", "How this was made", "", ["what", "value"], rows)


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_flat(inner) for inner in value)
    return str(value)


def model_tables(model: Numbers, key: str) -> dict[str, Table]:
    """Give a verifier's tables by section; those without numbers are left out."""
    tables = {"figures": figures_table(model, key), "thresholds": thresholds_table(model, key)}
    if len(model["folds"]) > 1:
        tables["folds"] = folds_table(model, key)
    if model["quality"]:
        tables["quality"] = quality_table(model, key)
    if model["people"] and model["people"]["rows"]:
        tables["people"] = people_table(model, key)
    return tables


def all_tables(numbers: Numbers) -> list[Table]:
    """Give every table, in the page's order."""
    tables = []
    if numbers["comparison"]:
        tables += [models_table(numbers), tests_table(numbers["comparison"])]
    for place, model in enumerate(numbers["models"], 1):
        tables += model_tables(model, str(place)).values()
    return [*tables, published_table(numbers), data_table(numbers), origin_table(numbers)]


def comparison_lines(summary: Numbers) -> list[str]:
    """Give the lines that a terminal shows for several verifiers, from `evaluate`'s summary."""
    models = [{"name": row["name"], "summary": row} for row in summary["models"]]
    lines: list[str] = []
    for table in (models_table({"models": models}), tests_table(summary["comparison"])):
        lines += [*([""] if lines else []), *aligned(table)]
    return lines


def aligned(table: Table) -> list[str]:
    """Give a table as lines of text, columns below each other."""
    rows = [list(table.columns), *([cell.text for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
