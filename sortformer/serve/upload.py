"""``/``: a page that sends a recording from a browser, and shows the page of its result."""

import re
from importlib import resources

from fastapi import Response

from sortformer.formats.kinds import FORMATS
from sortformer.serve.refusals import too_large

__all__ = ["page"]

# The page of a result replaces this one, under the same rules.
_RULES = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; media-src blob:; connect-src 'self'; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)


def page(most_bytes: int) -> Response:
    """Return the page, which may load nothing else, send to this server only, and be in no frame of another page.

    It refuses uploads of more than ``most_bytes`` before it sends them.
    """
    files = "\n".join(
        f'<option value="{name}" data-extension="{each.extension}">a file: .{each.extension}'
        f"{'' if each.turns else ', which needs a transcript'}</option>"
        for name, each in FORMATS.items()
    )
    template = (resources.files("sortformer.serve") / "upload.html").read_text(encoding="ascii")
    parts = {"files": files, "most_bytes": str(most_bytes), "too_large": too_large(most_bytes).detail}
    content = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": _RULES})
