"""The log of a run: one JSON object per line, without those of steps that were repeated."""

import json
import math
from collections.abc import Callable
from pathlib import Path

from sortformer.draft import drafted, naming
from sortformer.errors import InputError

__all__ = ["Report", "RunLog"]

Report = Callable[[dict[str, float]], None]


class RunLog:
    """Appends to a run's log; lines after ``step`` (at step 0: all) are dropped, because those steps are repeated.

    Values that are not finite are null in the file. Without a path nothing is written or reported.

    Raises:
        InputError: if the file has lines that are not of a log.
    """

    def __init__(self, path: Path | None, step: int, report: Report | None) -> None:
        self._path = path
        self._report = report
        if path is not None and path.exists():
            try:
                lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
                kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step and step]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(f"cannot continue {path}, which is damaged: move it away") from error
            with drafted(path) as draft:
                draft.write_text("".join(kept), encoding="utf-8")

    def write(self, line: dict[str, float]) -> None:
        """Append a line, and report it."""
        if self._path is None:
            return
        finite = {key: value if math.isfinite(value) else None for key, value in line.items()}
        with naming(self._path), self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(finite) + "\n")
        if self._report is not None:
            self._report(line)
