"""`python -m facepairs`: the same as the console script."""

from facepairs.cli.main import main

if __name__ == "__main__":
    main()
