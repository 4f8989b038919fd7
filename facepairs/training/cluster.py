"""Read from `TF_CONFIG` which of several workers this process is. Does not import TensorFlow.

    TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]},
                "task": {"type": "worker", "index": 0}}'

Kubeflow's TFJob and Vertex AI set the variable; under Slurm and elsewhere a line of shell does.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from facepairs.errors import BadConfig

VARIABLE = "TF_CONFIG"
ROLES = ("chief", "worker")  # workers are numbered in this order
HELP = 'set it as {"cluster": {"worker": ["HOST:PORT", …]}, "task": {"type": "worker", "index": N}}'


@dataclass(frozen=True)
class Cluster:
    """This process is number `worker` of `workers`; number 0 is the chief."""

    worker: int = 0
    workers: int = 1


class _Task(msgspec.Struct, frozen=True):
    type: str | None = None
    index: int | Annotated[str, Meta(pattern="^[0-9]{1,6}$")] | None = None


class _Description(msgspec.Struct, frozen=True):
    cluster: dict[str, list[str] | None] = {}
    task: _Task = _Task()


def read_cluster(environment: Mapping[str, str] = os.environ) -> Cluster:
    """Read `TF_CONFIG`; without it, or when it names one worker, this process is the only one.

    Raises:
        BadConfig: The text does not describe workers, or has tasks other than chief and worker.
    """
    text = environment.get(VARIABLE, "")
    if not text.strip():
        return Cluster()
    try:
        table = msgspec.json.decode(text, type=_Description)
    except (msgspec.MsgspecError, UnicodeError):
        raise BadConfig(f"{VARIABLE} is not a description of workers; {HELP}") from None
    tasks = {role: hosts for role, hosts in table.cluster.items() if hosts}
    role, index = table.task.type, table.task.index
    others = sorted({*tasks, role or ROLES[1]} - set(ROLES))
    if others:
        raise BadConfig(
            f"{VARIABLE} has {', '.join(map(str, others))}; training uses only chief and worker"
        )
    hosts = [host for name in ROLES for host in tasks.get(name, [])]
    if not hosts or (len(hosts) == 1 and role is None):
        return Cluster()
    if index is None or not 0 <= int(index) < len(tasks.get(role or "", [])):
        raise BadConfig(f"{VARIABLE}: its task is not in its cluster; {HELP}")
    before = len(tasks.get("chief", [])) if role == "worker" else 0
    return Cluster(before + int(index), len(hosts))
