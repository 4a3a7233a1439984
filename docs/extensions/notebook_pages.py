"""Notebooks as pages: their cells in order, not run, with the outputs that they store."""

from collections.abc import Iterator

import nbformat
from docutils import nodes
from myst_parser.sphinx_ import Parser
from sphinx.application import Sphinx


def _shown(output: nbformat.NotebookNode) -> Iterator[str]:
    """Yield an output as Markdown: a table or text as it is, a picture within the page."""
    if output.output_type == "stream":
        yield f"````text\n{output.text.rstrip()}\n````"
        return
    data = output.data
    if "image/png" in data:
        source = "".join(data["image/png"].split())
        yield f'<img alt="the figure that this cell draws" src="data:image/png;base64,{source}">'
    elif "text/markdown" in data:
        yield data["text/markdown"]
    else:
        yield f"````text\n{data['text/plain'].rstrip()}\n````"


class NotebookParser(Parser):
    """Reads a notebook as the Markdown that its cells make, code cells as blocks of Python."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Fill the document from a notebook's JSON.

        Args:
          inputstring: the notebook's text.
          document: what is filled.
        """
        cells = nbformat.reads(inputstring, as_version=4).cells
        blocks = []
        for cell in cells:
            if cell.cell_type == "markdown":
                blocks.append(cell.source)
            else:
                blocks.append(f"````python\n{cell.source}\n````")
                blocks += [block for output in cell.outputs for block in _shown(output)]
        super().parse("\n\n".join(blocks), document)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the parser.

    Args:
      app: Sphinx.
    """
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
