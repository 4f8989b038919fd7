"""Which worker a process is: what launchers say in TF_CONFIG."""

import json

import pytest

from facepairs.errors import BadConfig
from facepairs.training.distributed.cluster import Cluster, read_cluster


def told(cluster, kind=None, index=None, **more):
    task = {"type": kind, "index": index, **more} if kind else {}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Cluster(0, 1)),
        ({"TF_CONFIG": ""}, Cluster(0, 1)),
        ({"TF_CONFIG": "{}"}, Cluster(0, 1)),
        (told({"worker": ["a:1"]}), Cluster(0, 1)),
        (told({"worker": ["a:1"]}, "worker", 0), Cluster(0, 1)),
        (told({"worker": ["a:1", "b:1"]}, "worker", 1), Cluster(1, 2)),
        (told({"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "chief", 0), Cluster(0, 3)),
        (told({"worker": ["b:1", "c:1"], "chief": ["a:1"]}, "worker", 1), Cluster(2, 3)),
        # Vertex AI: the index is text in some of its images, and there is a trial.
        (told({"chief": ["a:1"], "worker": ["b:1"]}, "worker", "0", trial=""), Cluster(1, 2)),
        (told({"worker": ["a:1", "b:1"], "ps": []}, "worker", 0), Cluster(0, 2)),
    ],
)
def test_what_launchers_set_is_understood(environment, expected):
    assert read_cluster(environment) == expected


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"TF_CONFIG": "{"}, "not a description"),
        ({"TF_CONFIG": "[]"}, "not a description"),
        ({"TF_CONFIG": '{"cluster": {"worker": 3}}'}, "not a description"),
        ({"TF_CONFIG": '{"cluster": [1]}'}, "not a description"),
        (told({"worker": ["a:1", "b:1"], "ps": ["c:1"]}, "worker", 0), "has ps"),
        (told({"worker": ["a:1", "b:1"]}, "evaluator", 0), "has evaluator"),
        (told({"worker": ["a:1", "b:1"]}, "worker", 2), "not one of"),
        (told({"worker": ["a:1", "b:1"]}, "worker", -1), "not one of"),
        (told({"worker": ["a:1", "b:1"]}, "chief", 0), "not one of"),
        (told({"worker": ["a:1", "b:1"]}), "not one of"),
    ],
)
def test_what_cannot_be_meant_is_refused(environment, says):
    with pytest.raises(BadConfig, match=says):
        read_cluster(environment)
