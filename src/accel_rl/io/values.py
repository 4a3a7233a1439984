"""Type of values that files hold."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Value of a JSON or TOML file: text, number, bool, None, or lists and tables of these."""
