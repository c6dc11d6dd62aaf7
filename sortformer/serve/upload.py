"""``/``: a page that sends a recording from a browser, and shows the page of its result."""

from importlib import resources

from fastapi import Response

from sortformer.formats.kinds import FORMATS

__all__ = ["page"]

# The page of a result replaces this one, under the same rules.
_RULES = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; media-src blob:; connect-src 'self'; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)


def page() -> Response:
    """Return the page, which may load nothing else, send to this server only, and be in no frame of another page."""
    files = "\n".join(
        f'<option value="{name}" data-extension="{each.extension}">a file: .{each.extension}'
        f"{'' if each.turns else ', which needs a transcript'}</option>"
        for name, each in FORMATS.items()
    )
    template = (resources.files("sortformer.serve") / "upload.html").read_text(encoding="ascii")
    content = template.replace("{{files}}", files)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": _RULES})
