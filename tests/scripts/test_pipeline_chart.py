"""The chart of input pipelines shows the published figures."""

import re

import pipeline_chart

TEXT = pipeline_chart.PAGE.read_text(encoding="utf-8")


def test_the_chart_is_up_to_date_and_shows_every_row():
    drawn = pipeline_chart.PICTURE.read_text(encoding="utf-8")
    assert drawn == pipeline_chart.chart(TEXT), "run scripts/benchmarks/pipeline_chart.py"
    table = TEXT.partition("## Speed of training")[0]
    published = re.findall(r"^\| \**`[\w-]+`.*?\| ([\d,]+) \(", table, re.MULTILINE)
    assert len(published) == drawn.count("<circle") == 9
    assert all(f">{figure}</text>" in drawn for figure in published)
