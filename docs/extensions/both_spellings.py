"""Search that finds a page by British and by American spelling."""

import re

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

_AMERICAN = (
    (re.compile(r"is(ation|ations|e|ed|er|ers|es|ing)$"), r"iz\1"),
    (re.compile(r"(behavi|col|fav|neighb)our"), r"\1or"),
    (re.compile(r"centre"), "center"),
    (re.compile(r"modell(ed|ing)$"), r"model\1"),
)


class BothSpellings(SearchEnglish):
    """English whose index also holds the American spelling of a British word."""

    def split(self, input: str) -> list[str]:
        """Return the words of a text, and their other spellings.

        Args:
          input: text of a page.
        """
        words = super().split(input)
        return [*words, *(other for word in words if (other := american(word)) != word)]


def american(word: str) -> str:
    """Return the American spelling of a word; of some words, as raise, what nobody looks for.

    Args:
      word: one word.
    """
    for pattern, spelling in _AMERICAN:
        word = pattern.sub(spelling, word)
    return word


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the language of the search index.

    Args:
      app: Sphinx.
    """
    app.add_search_language(BothSpellings)
    return {"parallel_read_safe": True}
