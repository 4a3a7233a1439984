"""The documentation holds: links lead somewhere, and a page's examples run in order, as pasted."""

import importlib.util
import json
import pathlib
import re
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
NEEDS = re.compile(r"<!-- needs (\w+) -->\s*$")  # above an example: an optional module
EXAMPLE = re.compile(r"^( *)```python\n(.*?)^ *``` *$", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
TARGETS = (
    re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"),  # [text](target), ![text](target)
    re.compile(r"^ *\[[^\]]+\]: *<?([^\s>]+)", re.MULTILINE),  # [name]: target
    re.compile(r"\b(?:href|src)=\"([^\"]+)\""),
)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)

# What an example may read without having written it: a log as `datasets.load_text` imports it.
TEXT_LOG = "0 1 0 1\n1 0 0 1\n1 1 0 2\n2 1 1 2\n"


def ids(path):
    return str(path.relative_to(ROOT))


def prose(path):
    """A page's text, or a notebook's, without its code blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return FENCE.sub("", text)


def anchors(path):
    """The anchors that GitHub gives a page's headings, and those set by hand."""
    text = prose(path)
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^ {0,3}#{1,6} +(.+?)[ #]*$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        candidates = [slug, *(f"{slug}-{number}" for number in range(1, 100))]
        found.add(next(name for name in candidates if name not in found))
    return found


def broken_links(path, root=ROOT):
    text = CODE_SPAN.sub("", prose(path))
    for target in (match for pattern in TARGETS for match in pattern.findall(text)):
        if ELSEWHERE.match(target):
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        if not linked.exists() or not linked.is_relative_to(root):
            yield f"{target}: no such file in the repository"
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
            yield f"{target}: no such heading"


def run_examples(path):
    """Runs a page's examples in order, in one namespace; how many there were.

    One below a comment such as <!-- needs pgx --> runs only where the module is installed.
    """
    text = path.read_text(encoding="utf-8")
    names = {"__name__": path.stem}
    blocks = list(EXAMPLE.finditer(text))
    for block in blocks:
        needs = NEEDS.search(text, 0, block.start())
        if needs and importlib.util.find_spec(needs[1]) is None:
            continue
        above = "\n" * text.count("\n", 0, block.start(2))  # so that errors give the page's line
        exec(compile(above + textwrap.dedent(block[2]), path, "exec"), names)
    return len(blocks)


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=ids)
def test_links(path):
    assert list(broken_links(path)) == []


FIRST_HOUR = ROOT / "docs/tutorials/first-hour.md"  # tests/test_first_hour.py runs it
WITH_EXAMPLES = [page for page in PAGES if EXAMPLE.search(page.read_text()) and page != FIRST_HOUR]


@pytest.mark.long  # what the pages do takes minutes
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=ids)
def test_examples(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("log.txt").write_text(TEXT_LOG, encoding="utf-8")
    run_examples(path)


def test_pages_are_found():
    names = {ids(path) for path in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "docs/tabular-semantics.md"} <= names
    assert NOTEBOOKS


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `name`, and (more)\n\n## Twice\n\n## Twice\n\n"
        "[a](#a-name-and-more) [b](page.md#twice-1) [c](https://x.test/y) ![d](page.md 'no')\n"
        "`[code](no-code.md)`\n\n```sh\n[code](no-code.md)\n# Comment\n```\n\n"
        '[e](none.md) [![f](none.png)](#comment) [g](../) <img src="none.svg">\n\n[h]: none.txt\n',
        encoding="utf-8",
    )
    found = {line.partition(":")[0] for line in broken_links(page, tmp_path)}
    assert found == {"none.md", "none.png", "#comment", "../", "none.svg", "none.txt"}


def test_examples_that_need_an_absent_module_are_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- needs json -->\n\n```python\nx = 1\n```\n\n"
        "<!-- needs no_such_module_of_a_test -->\n\n```python\nassert False\n```\n\n"
        "```python\nassert x == 2\n```\n"
    )
    with pytest.raises(AssertionError) as error:
        run_examples(page)
    assert error.traceback[-1].lineno + 1 == 14


def test_broken_examples_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n1. item\n\n   ```python\n   assert x == 2\n   ```\n")
    with pytest.raises(AssertionError) as error:
        run_examples(page)
    assert error.traceback[-1].lineno + 1 == 8
