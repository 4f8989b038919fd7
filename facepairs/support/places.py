"""Places that a command is given: paths of this machine, or web addresses by mistake."""

import re
from pathlib import Path

from facepairs.errors import BadData

# A `Path` has merged the two slashes; one letter before the colon is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def refuse_url(place: Path | str) -> None:
    """Refuse the URL of what would have to be a file or folder of this machine.

    Raises:
        BadData: It is a URL, and no path that exists.
    """
    url = _URL.fullmatch(str(place))
    if url and not Path(place).exists():
        raise BadData(
            f"{url[1]}://{url[2]}: a web address, where a path on this machine is needed; download "
            "what is there, or write to a local path and copy it"
        )
