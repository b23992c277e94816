"""What a leader says of its work, and how far the server knows it."""

from __future__ import annotations

import json
from typing import Any, Mapping

from . import _wire
from ._errors import InvalidArgument

MAX_BYTES = 2048
EVERY = 3  # renewals; one with a report costs the store more
NEVER_FOR = 600.0  # seconds without reports after one was refused

#: The names of the counters here and in the API. They are cumulative for the term, and never fall.
COUNTERS = {"progress": "progress", "tasks": "tasks", "tokens_used": "tokensUsed", "calls": "calls", "errors": "errors"}
_MAPS = ("capabilities", "dependencies", "custom")

Report = dict[str, Any]


def merge(before: Mapping[str, Any], what: Mapping[str, Any]) -> Report:
    """The report before with a copy of what is said now. Raises InvalidArgument for what no server would take."""
    merged = dict(before)
    for name, value in what.items():
        if name in COUNTERS:
            if type(value) is not int or not 0 <= value < 2**53:
                raise InvalidArgument(f"{name} is {value!r}, and a counter is an integer, 0 or more")
            merged[COUNTERS[name]] = max(value, merged.get(COUNTERS[name], 0))
        elif name in _MAPS and isinstance(value, Mapping):
            both = {**merged.get(name, {}), **json.loads(_text(dict(value)))}
            merged[name] = {key: one for key, one in both.items() if one is not None}
        elif name == "eta":
            merged[name] = _wire.text(_wire.seconds(value, name))
        elif name == "health" and isinstance(value, str):
            merged[name] = value
        else:
            raise InvalidArgument(f"{name!r} is no part of a report, or {value!r} is no value for it")
    if len(_text(merged).encode()) > MAX_BYTES:
        raise InvalidArgument(f"a report has at most {MAX_BYTES} bytes")
    return merged


def _text(report: Report) -> str:
    try:
        return json.dumps(report, separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"a report has to be JSON: {error}") from None


class Reporting:
    """Decides which renewal carries the report."""

    def __init__(self) -> None:
        self._all: Report = {}
        self._told = _text({})  # the last that the server has taken or refused
        self._sending: str | None = None  # in the renewal that is under way
        self._plain = 0  # how many renewals go without before the next with one
        self._failed = False  # the last renewal had a report, and was not answered
        self._never = 0.0  # until then there are none, unless they are urgent

    def add(self, what: Mapping[str, Any]) -> None:
        self._all = merge(self._all, what)

    def next(self, now: float, urgent: bool) -> Report | None:
        """The report for the renewal that is about to be sent; None if it goes without."""
        text, due = _text(self._all), self._plain == 0 and now >= self._never
        # after a failure the lease comes first
        send = text != self._told and not self._failed and (due or urgent)
        self._sending = text if send else None
        return json.loads(text) if send else None

    def answered(self) -> None:
        """The renewal was answered with the lease."""
        self._failed = False
        if self._sending is not None:
            self._told, self._plain = self._sending, EVERY - 1
        elif self._plain:
            self._plain -= 1

    def unanswered(self) -> bool:
        """The renewal has failed: the next goes without a report. Says whether this one had one."""
        self._failed = self._sending is not None
        return self._failed

    def refused(self, now: float) -> None:
        """The server does not take the report."""
        self._told, self._never, self._failed = self._sending or self._told, now + NEVER_FOR, False
