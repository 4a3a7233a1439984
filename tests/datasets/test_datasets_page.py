"""The examples of docs/datasets.md run, one after another, as they stand."""

import pathlib
import re

import numpy as np

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "datasets.md"


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("log.txt", [[0, 1, 0, 1], [1, 0, 0, 1], [1, 1, 0, 2], [2, 1, 1, 2]], fmt="%d")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)
    assert names["packed"].records.itemsize == 8
    assert names["header"]["rows"] == names["reward"].size == 10_000
    np.testing.assert_array_equal(names["streamed"].tables, names["result"].tables)
    assert len(names["log"]) == 5
    assert len(names["data"]) == 3  # the last row's next action is not in the log
