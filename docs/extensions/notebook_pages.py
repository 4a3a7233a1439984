"""Notebooks as pages: their cells in order, not run; the notebooks are kept without outputs."""

import nbformat
from docutils import nodes
from myst_parser.sphinx_ import Parser
from sphinx.application import Sphinx


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
        blocks = [
            cell.source if cell.cell_type == "markdown" else f"````python\n{cell.source}\n````"
            for cell in cells
        ]
        super().parse("\n\n".join(blocks), document)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the parser.

    Args:
      app: Sphinx.
    """
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
