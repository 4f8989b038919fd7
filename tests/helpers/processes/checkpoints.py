"""What the checkpoint of a run holds: `python checkpoints.py RUN` prints its SHA-256."""

import hashlib
import subprocess
import sys
from pathlib import Path

STATE = "position"  # holds times
COUNTER = "save_counter"


def saved_arrays(run: Path) -> dict[str, bytes]:
    """Return the content of the weights and the optimizer that a run has saved, by name."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(run / "checkpoints"))
    names = (name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name)
    wanted = [name for name in names if not name.startswith((STATE, COUNTER))]
    return {name: reader.get_tensor(name).tobytes() for name in sorted(wanted)}


def saved_digest(run: Path) -> str:
    """Return the SHA-256 over the arrays; in a process of its own, without TensorFlow in this."""
    words = [sys.executable, __file__, str(run)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    print(hashlib.sha256(b"".join(saved_arrays(Path(sys.argv[1])).values())).hexdigest())
