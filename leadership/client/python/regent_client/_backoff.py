"""Pauses between tries."""

from __future__ import annotations

import random

_MIN, _MAX, _MAX_RETRY_AFTER = 0.1, 10.0, 60.0


class Backoff:
    """Doubles after each failure and is random, so that clients that failed together do not return together."""

    def __init__(self) -> None:
        self._failures = 0

    def after(self, error: object) -> float:
        """How long to wait after the error."""
        pause: float = min(_MIN * 2 ** min(self._failures, 10), _MAX)
        self._failures += 1
        return pause * random.uniform(0.5, 1) + min(float(getattr(error, "retry_after", 0)), _MAX_RETRY_AFTER)

    def reset(self) -> None:
        self._failures = 0
