"""Measures of the source code that tell how it reads: `python docs/measure_source.py [FOLDER...]`.

Without folders it measures src/accel_rl and pim_emu. Code lines are lines without blanks, comments
and docstrings. The figures are guides for a reviewer, not limits; none fails a check.
"""

import ast
import collections
import io
import pathlib
import re
import sys
import tokenize
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = (ROOT / "src" / "accel_rl", ROOT / "pim_emu")
_BAD_OPENING = re.compile(
    r"(What|How|Whether|Of|As|By|Which|Where|When|That|Those|Says|Gives|Raises)\b"
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def measure(folders: tuple[pathlib.Path, ...]) -> dict[str, float]:
    """Return the measures of all Python files below the folders, by name."""
    total: collections.Counter[str] = collections.Counter()
    classes: collections.Counter[str] = collections.Counter()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            total["files"] += 1
            total["lines"] += len(text.splitlines())
            code, comments = _code_and_comment_lines(text, tree)
            total["code"] += code
            total["comments"] += comments
            classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
            for node in ast.walk(tree):
                total["raise"] += isinstance(node, ast.Raise)
                total["Any"] += isinstance(node, ast.Name) and node.id == "Any"
            for docstring in _docstrings(tree):
                total["docstrings"] += 1
                total["bad"] += bool(_BAD_OPENING.match(docstring))
                total["Raises"] += "\nRaises:\n" in f"\n{docstring}\n".replace("    ", "")
    thousands = total["code"] / 1000
    return {
        "files": total["files"],
        "lines": total["lines"],
        "code lines": total["code"],
        "code lines per file": total["code"] / total["files"],
        "raise per 1,000 code lines": total["raise"] / thousands,
        "docstrings with Raises:": total["Raises"],
        "comment lines, % of code lines": 100 * total["comments"] / total["code"],
        "Any per 1,000 code lines": total["Any"] / thousands,
        "docstrings that open badly, %": 100 * total["bad"] / total["docstrings"],
        "class names shared": sum(count > 1 for count in classes.values()),
    }


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def _code_and_comment_lines(text: str, tree: ast.Module) -> tuple[int, int]:
    """Return the number of code lines and of lines that are only a comment."""
    documented = set()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code, comments = set(), set()
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments.update(lines)
        elif token.type not in skipped:
            code.update(lines)
    code -= documented
    return len(code), len(comments - code)


if __name__ == "__main__":
    folders = tuple(map(pathlib.Path, sys.argv[1:])) or DEFAULT
    for name, value in measure(folders).items():
        print(f"{name:32} {value:10,.1f}" if value % 1 else f"{name:32} {value:10,.0f}")
