"""Regent's client for Python: lead an election, and know at every moment whether you do."""

from ._cancel import Cancel
from ._errors import *  # noqa: F403
from ._errors import CODES

__all__ = ["CODES", "Cancel"]
