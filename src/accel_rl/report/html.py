"""A page as one HTML file that needs nothing else: no script, no network, pictures within."""

import base64
import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from accel_rl import __version__
from accel_rl.io import atomic_write
from accel_rl.report import page as pages
from accel_rl.report.page import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render(page: Page) -> str:
    """Return the page's HTML. All text is escaped; pictures must be data URIs.

    Raises:
      ValueError: a picture is elsewhere.
    """
    for section in page.sections:
        for picture in section.pictures:
            if not picture.uri.startswith("data:image/"):
                raise ValueError(f"picture {picture.title!r} must be a data URI")
    return _templates().get_template("page.html.j2").render(page=page, version=__version__)


def write(path: Path, page: Page) -> Path:
    """Write the page, whole or not at all; return the path.

    Raises:
      OSError: the file cannot be written.
    """
    content = render(page)
    with atomic_write(path, "w") as file:
        file.write(content)
    return path


def svg(figure: "Figure") -> str:
    """Return a drawing as a data URI. Text is drawn as outlines, so that no font is asked for.

    The same drawing gives the same bytes.
    """
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "accel_rl"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _uri("image/svg+xml", file.getvalue())


def png(content: bytes) -> str:
    """Return the content of a PNG file as a data URI.

    Raises:
      ValueError: it is none.
    """
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError("it is no PNG file")
    return _uri("image/png", content)


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@functools.cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("accel_rl.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {"text": pages.text}
    found.filters.update(filters)
    return found
