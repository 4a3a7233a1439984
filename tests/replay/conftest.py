"""Chi-square tests live with the associative memory's tests, which use them as much."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "am"))
