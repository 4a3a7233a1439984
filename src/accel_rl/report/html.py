"""Rendering of a page as one self-contained HTML file, without scripts or network access."""

import base64
import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from accel_rl import __version__
from accel_rl.io import atomic_write
from accel_rl.io.values import Json
from accel_rl.report import page as pages
from accel_rl.report.page import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render(page: Page) -> str:
    """Render the page as HTML; all text is escaped."""
    return _templates().get_template("page.html.j2").render(page=page, version=__version__)


def fill(template: str, **fields: Json) -> str:
    """Fill in a template of plain text, with line breaks as blanks.

    Raises:
      jinja2.UndefinedError: if the template names an absent field.
    """
    filled = _templates(autoescape=False).from_string(template).render(fields)
    return " ".join(filled.split())


def write(path: Path, page: Page) -> Path:
    """Write the page atomically, and return the path."""
    with atomic_write(path, "w") as file:
        file.write(render(page))
    return path


def svg(figure: "Figure") -> str:
    """Convert a drawing to a data URI; text becomes outlines, so that no font is needed.

    The same drawing gives the same bytes.
    """
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "accel_rl"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _uri("image/svg+xml", file.getvalue())


def png(path: Path) -> str:
    """Convert a PNG file to a data URI.

    Raises:
      ValueError: if it is not a PNG file.
    """
    content = path.read_bytes()
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError(f"{path} is no PNG file")
    return _uri("image/png", content)


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@functools.cache
def _templates(autoescape: bool = True) -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("accel_rl.report"),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Json] = {"text": pages.text}
    found.filters.update(filters)
    return found
