"""Lines of `accel-rl replay-server` on stderr: for people, or a JSON object each."""

import json
import time
import warnings
from typing import Any

from accel_rl.cli import console


class ServerLog:
    """Writer of what happens at a server, each event with a name and fields."""

    def __init__(self, *, as_json: bool) -> None:
        """Write sentences, or with `as_json` objects with "time" in seconds from 1970."""
        self._as_json = as_json
        self._trouble = ""

    def event(self, name: str, sentence: str, **fields: Any) -> None:
        """Write a line."""
        if self._as_json:
            sentence = json.dumps({"time": time.time(), "event": name, **fields}, allow_nan=False)
        console.note(sentence)

    def warned(self, found: list[warnings.WarningMessage]) -> None:
        """Write what a server warned of while it started."""
        for each in found:
            self.event("warning", f"accel-rl: {each.message}", message=str(each.message))

    def look(self, server: Any) -> None:
        """Write of a server's slow requests, and of its log, what is new since the last look."""
        for each in server.slow_requests():
            what = f"{each['operation']} of {each['bytes']:,} bytes"
            self.event("slow_request", f"slow: {what} took {each['seconds']:.3f} s", **each)
        trouble = server.stats().get("log", {}).get("trouble", "")
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            self.event("log_failed", f"changes are refused: {trouble}", message=trouble)
        else:
            self.event("log_mended", "changes are logged again")
