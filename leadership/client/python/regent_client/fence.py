"""Keeps the writes of former leaders out of an SQL database, through any DB-API 2.0 driver (PEP 249) for PostgreSQL or SQLite.

guard() raises the mark of a resource in the caller's own transaction, or refuses. It shares its table with Go's package sqlfence, whose
documentation says why it is one statement, and why that suffices at every isolation level."""

from __future__ import annotations

import re
import sys
from typing import Any, Mapping, Protocol

from ._errors import InvalidArgument, RecordCorrupt, TokenStale
from ._wire import check_election

DEFAULT_TABLE = "regent_fence"
MAX_TOKEN = 2**53 - 1

# Names that mean the same with and without quotes, optionally after a schema.
_TABLE = re.compile(r"([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}")

# How each paramstyle writes the first, second and third parameter. With names they are a mapping, otherwise a tuple.
_STYLES = {
    "qmark": ("?", "?", "?"),
    "numeric": (":1", ":2", ":3"),
    "format": ("%s", "%s", "%s"),
    "named": (":resource", ":election", ":token"),
    "pyformat": ("%(resource)s", "%(election)s", "%(token)s"),
}


class Cursor(Protocol):
    """What guard needs of a cursor of PEP 249."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, operation: str, parameters: Any, /) -> Any: ...
    def fetchone(self) -> Any: ...


def schema(table: str = DEFAULT_TABLE) -> str:
    """Returns the statement that creates the table of marks if it does not exist, for database migrations. Do not delete a row while
    a former leader may still be active: the mark would be lost."""
    return f"""CREATE TABLE IF NOT EXISTS {_quoted(table)} (
	resource      TEXT   NOT NULL PRIMARY KEY,
	election      TEXT   NOT NULL,
	fencing_token BIGINT NOT NULL CHECK (fencing_token > 0)
)"""


def guard(
    cursor: Cursor, election: str, token: int, *, resource: str | None = None, table: str = DEFAULT_TABLE, paramstyle: str | None = None
) -> None:
    """Raises the mark of a resource to the leader's token, or raises why the leader must not write to it.

    Call it first in a transaction; it covers all that the transaction does after it. A resource is any text that the writers agree
    on, by default the election's name. Once the transaction has committed, no leader with a lower token can write to the resource.
    guard waits for other transactions in progress that have called it for the resource. paramstyle is that of the cursor's driver.

    After any error the caller must roll back:

    - TokenStale, with the mark's token: a later leader has written. Unless a renewal brings a newer token, stop acting as leader.
    - InvalidArgument: the election, token or resource is none; the resource is another election's; or there is no transaction: the
      connection is in autocommit mode, where the mark would not cover what follows.
    - RecordCorrupt: the resource's row was not written by guard.
    - any other is the driver's own, such as a serialization failure. The transaction may be repeated."""
    resource = election if resource is None else resource
    _validate(election, token, resource)
    name, style = _quoted(table), _style(cursor, paramstyle)
    first, second, third = _STYLES[style]
    cursor.execute(
        f"""INSERT INTO {name} AS mark (resource, election, fencing_token) VALUES ({first}, {second}, {third})
	ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
	WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token""",
        _parameters(style, resource, election, token),
    )
    rows = cursor.rowcount
    if _autocommits(cursor):
        raise InvalidArgument("guard needs a transaction, and the connection is in autocommit mode: begin one first")
    if rows == 1:
        return
    if rows != 0:
        raise InvalidArgument(f"guard needs a driver that counts the rows that it writes, and rowcount is {rows}")
    # The row is locked even if it was left unchanged, so this sees what the statement above saw.
    cursor.execute(f"SELECT election, fencing_token FROM {name} WHERE resource = {first}", _parameters(style, resource))
    _refuse(cursor.fetchone(), election, token, resource)


def _validate(election: str, token: int, resource: str) -> None:
    check_election(election)
    if type(token) is not int or not 1 <= token <= MAX_TOKEN:
        raise InvalidArgument(f"a fencing token is an integer from 1 to {MAX_TOKEN}, not {token!r}")
    if not isinstance(resource, str) or not resource:
        raise InvalidArgument("the resource's name is empty, or no text")


def _refuse(row: Any, election: str, token: int, resource: str) -> None:
    """Raises why the mark in the row does not admit the token."""
    if row is None:
        raise RecordCorrupt(f"the mark of {resource!r} could be neither raised nor read: the table differs from schema()")
    marked, mark = row.values() if isinstance(row, Mapping) else row
    if isinstance(marked, bytes):
        marked = marked.decode(errors="replace")
    try:
        valid = check_election(marked) and type(mark) is int and 1 <= mark <= MAX_TOKEN
    except InvalidArgument:
        valid = False
    if valid and marked != election:
        raise InvalidArgument(
            f"the resource {resource!r} is guarded by election {marked!r}, but the token is of election {election!r}; "
            "tokens of two elections cannot be compared"
        )
    if valid and token < mark:
        raise TokenStale(
            f"token {token} of election {election!r} is stale: {mark} has written; unless a renewal brings a newer token, stop acting as leader",
            {"election": election, "fencingToken": mark},
        )
    raise RecordCorrupt(
        f"the mark of {resource!r} is election {marked!r} with fencing token {mark!r}, but was not raised to token {token}: "
        "the table differs from schema()"
    )


def _quoted(table: str) -> str:
    if not isinstance(table, str) or not _TABLE.fullmatch(table):
        raise InvalidArgument(f"a table's name is 63 of a-z 0-9 _ at most, optionally after a schema and a '.', unlike {table!r:.140}")
    return '"' + table.replace(".", '"."') + '"'


def _style(cursor: Cursor, given: str | None) -> str:
    """Returns the paramstyle of the cursor's driver: a global of the driver's module, or of a package above it."""
    for kind in type(cursor).__mro__:
        module = "" if given else kind.__module__
        while module and given is None:
            given = getattr(sys.modules.get(module), "paramstyle", None)
            module = module.rpartition(".")[0]
    if given not in _STYLES:
        raise InvalidArgument(f"name the driver's paramstyle, one of {', '.join(_STYLES)}; that of {type(cursor).__name__} is {given!r}")
    return str(given)


def _parameters(style: str, *values: Any) -> Any:
    return dict(zip(("resource", "election", "token"), values)) if style in ("named", "pyformat") else values


def _autocommits(cursor: Cursor) -> bool:
    """Reports whether the cursor has just written outside of a transaction, as far as its driver tells: sqlite3 and psycopg do."""
    connection: Any = getattr(cursor, "connection", None)
    if hasattr(connection, "in_transaction"):
        return not connection.in_transaction
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    return status is not None and int(status) == 0
