"""The clock that deadlines are counted on."""

from __future__ import annotations

import sys
import time


def _number() -> int | None:
    """The number of a clock that runs while the machine is suspended."""
    if sys.platform == "darwin":
        return getattr(time, "CLOCK_MONOTONIC", None)  # of clock_gettime; time.monotonic stands still there
    return getattr(time, "CLOCK_BOOTTIME", None)


_NUMBER = _number()


def now() -> float:
    """Seconds on a clock that cannot be set and that runs while the machine is suspended: CLOCK_BOOTTIME on Linux,
    CLOCK_MONOTONIC on macOS.

    Elsewhere it is time.monotonic, which Windows documents to count a suspension. On other systems it may stand still
    meanwhile, and a leader that was suspended believes for longer than it may: there only the fencing token helps.
    """
    return time.monotonic() if _NUMBER is None else time.clock_gettime(_NUMBER)
