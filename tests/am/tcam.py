"""A slow, obvious ternary CAM: rows of cells that hold one bit each, searched cell by cell."""

import numpy as np


def cells_of(number, width):
    """The bits of a number as characters, the most significant first."""
    return [str(int(number) >> (width - 1 - place) & 1) for place in range(width)]


def search_word(query, dont_care, width):
    """A search word of 0, 1 and X (matches anything)."""
    masked = cells_of(dont_care, width)
    return ["X" if x == "1" else b for b, x in zip(cells_of(query, width), masked, strict=True)]


class Tcam:
    """Rows of cells with a valid bit each; every search returns match lines or a row's index."""

    def __init__(self, keys, valid=None):
        self.width = 8 * keys.dtype.itemsize
        self.numbers = [int(key) for key in keys]
        self.rows = [cells_of(key, self.width) for key in keys]
        self.valid = [True] * len(keys) if valid is None else [bool(bit) for bit in valid]

    def mismatches(self, row, word):
        return sum(w not in ("X", c) for c, w in zip(self.rows[row], word, strict=True))

    def match(self, query, dont_care=0):
        word = search_word(query, dont_care, self.width)
        rows = range(len(self.rows))
        return np.array([self.valid[row] and self.mismatches(row, word) == 0 for row in rows])

    def prefix(self, query, low_bits):
        return self.match(query, 2 ** int(low_bits) - 1)

    def distance(self, row, query):
        return abs(self.numbers[row] - int(query))

    def radius(self, query, radius):
        rows = range(len(self.rows))
        return np.array([self.valid[r] and self.distance(r, query) <= int(radius) for r in rows])

    def nearest(self, query, k):
        order = [row for row in range(len(self.rows)) if self.valid[row]]
        order.sort(key=lambda row: (self.distance(row, query), row))
        lines = np.zeros(len(self.rows), bool)
        lines[order[: max(int(k), 0)]] = True
        return lines

    def best_match(self, query, dont_care=0):
        word = search_word(query, dont_care, self.width)
        found = [(self.mismatches(r, word), r) for r in range(len(self.rows)) if self.valid[r]]
        return min(found)[1] if found else -1

    def any_match(self, queries, dont_cares):
        lines = np.zeros(len(self.rows), bool)
        for query, dont_care in zip(queries, dont_cares, strict=True):
            lines |= self.match(query, dont_care)
        return lines

    def any_radius(self, queries, radii):
        lines = np.zeros(len(self.rows), bool)
        for query, radius in zip(queries, radii, strict=True):
            lines |= self.radius(query, radius)
        return lines
