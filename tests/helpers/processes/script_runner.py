"""Run a script of the project in this process, which saves the start of Python and TensorFlow."""

import runpy
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from processes.command_line import Result

ROOT = Path(__file__).parents[3]


def run_script(script: str, *arguments: object) -> Result:
    """Run a script by its path below the project's root; its `main` gets the arguments."""
    out, err = StringIO(), StringIO()
    code: object = None
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        main = runpy.run_path(str(ROOT / script))["main"]
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
            if isinstance(code, str):  # as Python itself does
                print(code, file=sys.stderr)
                code = 1
    return Result(int(code or 0), out.getvalue(), err.getvalue())
