"""Tables and figures as files."""

import csv
import io

import pytest
from PIL import Image
from processes.command_line import in_process
from tiny.scores import invented

from facepairs.bundles.rates import Rate
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.group_errors import GroupRatio
from facepairs.evaluation.report.parts import ratio_cell
from facepairs.evaluation.report.table import facts_of, html_of, table_of, text_of
from facepairs.evaluation.scores import write_scores

RATE = Rate(0.125, (0.0625, 0.25), 1, 8)


def test_csv_has_numbers_that_are_not_rounded():
    table = table_of("t", "Title", [{"name": 'a "b", c', "FMR": RATE, "n": 1234, "AUC": 1 / 3}])
    (row,) = csv.DictReader(io.StringIO(table.to_csv()))
    assert row["name"] == 'a "b", c'
    assert [float(row[name]) for name in ("FMR", "FMR low", "FMR high")] == [0.125, 0.0625, 0.25]
    assert (row["n"], float(row["AUC"])) == ("1234", 1 / 3)
    rows = [*csv.reader(io.StringIO(facts_of("f", "", [("FMR", RATE), ("x", "y")]).to_csv()))]
    assert rows == [
        ["figure", "value", "value low", "value high", "text"],
        ["FMR", "0.125", "0.0625", "0.25", "12.50 % (6.25 to 25.00)"],
        ["x", "y", "", "", "y"],
    ]


def test_a_table_shows_itself_and_a_ratio_may_have_no_upper_end():
    table = table_of("t", "Title", [{"name": "a", "FMR": RATE}])
    assert str(table) == text_of([table])
    assert table._repr_html_() == html_of([table])
    for value, interval in ((None, (1.5, 2.0)), (3.0, (1.5, None))):
        ratio = GroupRatio(larger="a", smaller="b", value=value, interval=interval)
        assert ratio_cell(ratio) == ("at least 1.50", value, interval)


def test_latex_needs_no_package_and_escapes_names():
    table = table_of("t", "50 %", [{"name": r"a_b & c\d {~^#$}", "FMR": RATE}], note="n")
    lines = table.to_latex().splitlines()
    assert lines[:4] == [
        r"\begin{table}",
        r"\caption{50 \%. n}",
        r"\begin{tabular}{lr}",
        r"\hline",
    ]
    assert lines[6] == (
        r"a\_b \& c\textbackslash{}d \{\textasciitilde{}\textasciicircum{}\#\$\} "
        r"& 12.50 \% (6.25 to 25.00) \\"
    )
    assert lines[-2:] == [r"\end{tabular}", r"\end{table}"]


def test_every_table_and_figure_becomes_a_file(tmp_path):
    scores = tmp_path / "scores.csv"
    write_scores(scores, invented(folds=0))
    both = tmp_path / "out"
    done = in_process("evaluate", scores, "--tables", both, "--figures", both)
    assert f"written: {both}" in done.stderr
    found = evaluate([scores])
    expected = {f"{table.key}{end}" for table in found.tables() for end in (".csv", ".tex")}
    expected |= {f"{key}{end}" for key in found.figures() for end in (".svg", ".png")}
    assert {path.name for path in both.iterdir()} == expected
    rows = dict(row[:2] for row in csv.reader((both / "figures-1.csv").read_text().splitlines()))
    assert float(rows["Equal error rate (EER)"]) == found.summary.eer.value
    by_name = {row[0]: row for row in csv.reader((both / "figures-1.csv").read_text().splitlines())}
    summary = found.summary
    rates = {"Accuracy": summary.balanced_accuracy, "AUC": summary.auc}
    for label, rate in (rates | {"TAR at FAR 10 %": summary.true_accepts("0.1")}).items():
        assert [*map(float, by_name[label][1:4])] == [rate.value, *rate.interval]
    assert by_name["TAR at FAR 10 %"][4].endswith("20 of 200 impostor pairs accepted")
    with Image.open(both / "det.png") as image:
        assert (image.format, image.size, image.getpixel((0, 0))[:3]) == (
            "PNG",
            (1000, 780),
            (254, 254, 254),
        )
    assert (both / "det.svg").read_text() == found.figures()["det"]._repr_svg_()


@pytest.mark.parametrize("option", ["--tables", "--figures"])
def test_a_file_in_place_of_the_folder_is_refused_before_anything_is_measured(tmp_path, option):
    (tmp_path / "file").write_text("mine")
    done = in_process("evaluate", tmp_path / "no.csv", option, tmp_path / "file", check=2)
    assert "not a folder" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"
