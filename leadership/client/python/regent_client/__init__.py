"""Regent's client for Python: lead an election, and know at every moment whether you do.

    with Client("http://127.0.0.1:8080") as client, client.lead("reports") as lease:
        while lease.valid() and (report := next(reports, None)):
            save(report, fence=lease.token)

regent_client.aio has the same for asyncio.
"""

from . import _errors
from ._cancel import Cancel
from ._core import cksum_priority
from ._errors import *  # noqa: F403
from ._errors import CODES, RegentError
from ._follow import Item
from ._handle import Handle
from ._model import (
    Acknowledgement, Checkpoint, Decision, Effect, Effects, Entry, Event, Explanation, Members, Node, Proposal, Proposals, Reading, Snapshot, Succession,
)
from ._reads import Member
from ._term import Notice
from ._credentials import FileCredential, MetadataCredential
from .client import Client, Lease
from .fence import guard

__all__ = [
    "Acknowledgement", "CODES", "Cancel", "Checkpoint", "Client", "Decision", "Effect", "Effects", "Entry", "Event", "Explanation", "FileCredential", "Handle", "Item",
    "Lease", "Member", "Members", "MetadataCredential", "Node", "Notice", "Proposal", "Proposals", "Reading", "Snapshot", "Succession", "cksum_priority", "guard",
]
__all__ += [name for name, kind in vars(_errors).items() if isinstance(kind, type) and issubclass(kind, RegentError)]
