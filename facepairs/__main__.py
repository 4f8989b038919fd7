"""The console script, and `python -m facepairs`."""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; an import error must not look like a verdict (exit codes 0, 1, 3)."""
    try:
        from facepairs.cli.app import main as run

        run()
    except Exception as error:  # noqa: BLE001 - of memory, of a file that is damaged or missing
        with suppress(OSError):
            print(f"facepairs: error: cannot start ({error}); install it again", file=sys.stderr)
        os._exit(2)  # Python would complain again of a stderr that is full


if __name__ == "__main__":
    main()
