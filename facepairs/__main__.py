"""The console script, and `python -m facepairs`."""

import sys


def main() -> None:
    """Run the command line; an import that fails is no verdict, whose exit codes are 0, 1 and 3."""
    try:
        from facepairs.cli.main import main as run

        run()
    except Exception as error:  # noqa: BLE001 - of memory, of a file that is damaged or missing
        print(f"facepairs: error: cannot start ({error}); install it again", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
