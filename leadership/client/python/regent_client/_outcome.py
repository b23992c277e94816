"""How a leader says that its work has ended."""

from __future__ import annotations

import re

from ._errors import Cancelled, InvalidArgument

_OUTCOMES = ("done", "failed", "stopped")
_MOST = 256  # bytes of a note


def outcome_of(outcome: str, note: str) -> dict[str, str]:
    """What a release says of the outcome; InvalidArgument if that is none."""
    if outcome and outcome not in _OUTCOMES:
        raise InvalidArgument(f"outcome is one of {', '.join(_OUTCOMES)}, or left out, not {outcome!r}")
    if note and (not outcome or len(note.encode()) > _MOST or re.search(r"[\x00-\x1f\x7f-\x9f]", note)):
        raise InvalidArgument(f"a note is one line of at most {_MOST} bytes that says more about an outcome")
    return {name: value for name, value in (("outcome", outcome), ("note", note)) if value}


def ended(error: BaseException | None) -> tuple[str, str]:
    """The outcome of a block that the error has ended, and a note."""
    if error is None:
        return "done", ""
    if isinstance(error, Cancelled) or not isinstance(error, Exception):  # as of a signal, or of a task that is cancelled
        return "stopped", ""
    return "failed", type(error).__name__[:_MOST]  # its text may be secret, and every reader sees the history
