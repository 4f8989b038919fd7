"""`read_cluster` reads from TF_CONFIG which worker a process is."""

import json

import pytest

from facepairs.errors import BadConfig
from facepairs.training.cluster import Cluster, read_cluster


def tf_config(cluster, kind=None, index=None, **more):
    task = {"type": kind, "index": index, **more} if kind else {}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Cluster(0, 1)),
        ({"TF_CONFIG": "{}"}, Cluster(0, 1)),
        (tf_config({"worker": ["a:1"]}), Cluster(0, 1)),
        (tf_config({"worker": ["a:1", "b:1"]}, "worker", 1), Cluster(1, 2)),
        (tf_config({"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "chief", 0), Cluster(0, 3)),
        (tf_config({"worker": ["b:1", "c:1"], "chief": ["a:1"]}, "worker", 1), Cluster(2, 3)),
        # Vertex AI: the index is text in some of its images, and there is a trial.
        (tf_config({"chief": ["a:1"], "worker": ["b:1"]}, "worker", "0", trial=""), Cluster(1, 2)),
        (tf_config({"worker": ["a:1", "b:1"], "ps": None}, "worker", 0), Cluster(0, 2)),
    ],
)
def test_descriptions_of_real_launchers_are_read(environment, expected):
    assert read_cluster(environment) == expected


@pytest.mark.parametrize(
    "environment",
    [
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": '{"cluster": {"worker": 3}}'},
        {"TF_CONFIG": '{"cluster": {"worker": "a:1"}}'},
        tf_config({"worker": ["a:1", "b:1"]}, ["worker"], 0),
        tf_config({"worker": ["a:1", "b:1"]}, "worker", "²"),
        tf_config({"worker": ["a:1", "b:1"], "ps": ["c:1"]}, "worker", 0),
        tf_config({"worker": ["a:1", "b:1"]}, "evaluator", 0),
        tf_config({"worker": ["a:1", "b:1"]}, "worker", 2),
        tf_config({"worker": ["a:1", "b:1"]}, "worker", -1),
        tf_config({"worker": ["a:1", "b:1"]}, "chief", 0),
        tf_config({"worker": ["a:1", "b:1"]}),
    ],
)
def test_invalid_descriptions_are_refused(environment):
    with pytest.raises(BadConfig):
        read_cluster(environment)
