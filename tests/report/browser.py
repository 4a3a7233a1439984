"""Chromium without a window, where it is installed; and what a page's HTML holds by itself."""

import html
import html.parser
import json
import re
import shutil
import subprocess

from optional import needs

CHROMIUM = shutil.which("chromium")
needs_chromium = needs("Chromium")
_VOID = {"meta", "link", "img", "br", "hr", "input", "col", "wbr", "source"}
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
# Appended to a copy of the page: what the browser made of it, as text that --dump-dom shows.
_PROBE = """
<script>
addEventListener("load", () => {
  const found = {
    images: [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight]),
    requests: performance.getEntriesByType("resource").map(e => e.name.slice(0, 60)),
    headings: [...document.querySelectorAll("h1, h2")].map(h => h.innerText),
    wide: document.documentElement.scrollWidth - innerWidth,
    text: document.body.innerText,
  };
  const told = document.createElement("pre");
  told.id = "probe";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
});
</script>
"""


class Outline(html.parser.HTMLParser):
    """A page's elements and text; complains of tags that are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}> at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def outline(text):
    """The outline of a page that is well-formed, needs nothing else and serves readers."""
    found = Outline(text)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"script", "iframe", "object", "embed", "form", "base"}
    for tag, attributes in found.elements:
        for name, value in attributes.items():
            if name in ("src", "srcset", "data", "poster", "action"):
                assert value.startswith("data:"), (tag, name, value[:80])
            if name == "href":
                assert value.startswith(("#", "data:")), (tag, value)
            assert not name.startswith("on"), (tag, name)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style
    assert len(found.all("h1")) == 1
    assert found.all("html")[0]["lang"] == "en"
    assert found.all("title")
    assert all(image["alt"].strip() for image in found.all("img"))
    assert all(cell.get("scope") in ("row", "col") for cell in found.all("th"))
    assert len(found.all("caption")) == len(found.all("table"))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    anchors = {a["href"][1:] for a in found.all("a")}
    assert anchors <= set(ids)
    return found


def opened(path, folder, width=1100):
    """What Chromium makes of the page: see `_PROBE`; it must not complain on its console."""
    text = path.read_text(encoding="utf-8")
    assert "</body>" in text
    # The probe is a script, which the page's own policy forbids.
    text = text.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    copy = folder / f"{path.stem}-probed.html"
    copy.write_text(text.replace("</body>", f"{_PROBE}</body>"), encoding="utf-8")
    command = [
        CHROMIUM,
        *_FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},900",
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        "--dump-dom",
        copy.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    probe = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert probe, done.stderr[-2000:]
    return json.loads(html.unescape(probe.group(1)))
