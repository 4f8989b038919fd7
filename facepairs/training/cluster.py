"""Which of several workers this process is, as `TF_CONFIG` says:

    TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]},
                "task": {"type": "worker", "index": 0}}'

Kubeflow's TFJob and Vertex AI set the variable; under Slurm and elsewhere a line of shell does.
Does not import TensorFlow.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from facepairs.errors import BadConfig


@dataclass(frozen=True)
class Cluster:
    """This process is number `worker` of `workers`; number 0 is the chief."""

    worker: int = 0
    workers: int = 1


class _Hosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The chief comes before the workers; there are no parameter servers."""

    chief: list[str] = []
    worker: list[str] = []
    ps: Annotated[list[str], Meta(max_length=0)] | None = None


class _Task(msgspec.Struct, frozen=True):
    type: str | None = None
    index: int | str = -1


class _Description(msgspec.Struct, frozen=True):
    cluster: _Hosts = _Hosts()
    task: _Task = _Task()


def read_cluster(environment: Mapping[str, str] = os.environ) -> Cluster:
    """Read `TF_CONFIG`; without it, or when it names one worker, this process is the only one.

    Raises:
        BadConfig: The text does not describe a chief and workers, this process among them.
    """
    text = environment.get("TF_CONFIG", "").strip() or "{}"
    try:
        table = msgspec.json.decode(text, type=_Description)
        hosts, task = table.cluster, (table.task.type, int(table.task.index))
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadConfig(f"TF_CONFIG is not a description of chief and workers: {error}") from None
    tasks = [("chief", k) for k in range(len(hosts.chief))]
    tasks += [("worker", k) for k in range(len(hosts.worker))]
    if len(tasks) < 2:
        return Cluster()
    if task not in tasks:
        raise BadConfig("TF_CONFIG: its task is not in its cluster")
    return Cluster(tasks.index(task), len(tasks))
