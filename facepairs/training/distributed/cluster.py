"""Which of several workers this process is: `TF_CONFIG`, as launchers set it. No TensorFlow here.

    TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]},
                "task": {"type": "worker", "index": 0}}'

Kubeflow's TFJob and Vertex AI set it; under Slurm and elsewhere a line of shell does.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from facepairs.errors import BadConfig

DEVICES = ("auto", "one", "all")
VARIABLE = "TF_CONFIG"
ROLES = ("chief", "worker")  # in the order of their numbers
HELP = 'set it as {"cluster": {"worker": ["HOST:PORT", …]}, "task": {"type": "worker", "index": N}}'


@dataclass(frozen=True)
class Cluster:
    """This process among `workers`: number `worker`, of which 0 is the chief."""

    worker: int = 0
    workers: int = 1


def read_cluster(environment: Mapping[str, str] = os.environ) -> Cluster:
    """Read `TF_CONFIG`; where it is not set, or names one worker, this process is alone.

    Raises BadConfig for what is not such a description, or has tasks other than chief and worker.
    """
    text = environment.get(VARIABLE, "")
    if not text.strip():
        return Cluster()
    try:
        table = json.loads(text)
        tasks = {role: list(hosts) for role, hosts in table.get("cluster", {}).items() if hosts}
        role, index = table.get("task", {}).get("type"), table.get("task", {}).get("index")
    except (ValueError, AttributeError, TypeError):
        raise BadConfig(f"{VARIABLE} is not a description of workers; {HELP}") from None
    others = sorted({*tasks, role or ROLES[1]} - set(ROLES))
    if others:
        raise BadConfig(
            f"{VARIABLE} has {', '.join(map(str, others))}; training knows chief and worker alone"
        )
    hosts = [host for name in ROLES for host in tasks.get(name, [])]
    if not hosts or (len(hosts) == 1 and role is None):
        return Cluster()
    if not str(index).isdigit() or int(index) >= len(tasks.get(role, [])):
        raise BadConfig(f"{VARIABLE}: its task is not one of its cluster's; {HELP}")
    before = len(tasks.get("chief", [])) if role == "worker" else 0
    return Cluster(before + int(index), len(hosts))
