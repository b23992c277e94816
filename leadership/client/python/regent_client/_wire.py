"""The forms that server and client share: durations, names, the address of a server."""

from __future__ import annotations

import ipaddress
import json
import math
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ._errors import InvalidArgument, PayloadTooLarge

#: A duration: seconds, a timedelta, or text such as "30s", "1m30s" or "1500ms".
Duration = float | str | timedelta

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)"


def seconds(value: Duration, name: str) -> float:
    """The duration in seconds; InvalidArgument if it is none."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, str) and re.fullmatch(f"(?:{_PART})+", value):
        value = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise InvalidArgument(f'{name} is {value!r}; it is a number of seconds, or text such as "30s" or "1m30s"')
    return float(value)


def text(duration: float) -> str:
    """Seconds as the API has them, in whole milliseconds: "30s", "1.5s"."""
    return f"{duration:.3f}".rstrip("0").rstrip(".") + "s"


_ELECTION = re.compile(r"[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?")
_CANDIDATE = re.compile(r"[A-Za-z0-9._@:-]{1,128}")


def check_election(name: str) -> str:
    if not isinstance(name, str) or not _ELECTION.fullmatch(name):
        raise InvalidArgument(f"{name!r} is no election; a name is 1 to 128 of a-z 0-9 . _ - and begins and ends with a letter or a digit")
    return name


def check_candidate(name: str) -> str:
    if not isinstance(name, str) or not _CANDIDATE.fullmatch(name):
        raise InvalidArgument(f"{name!r} is no candidate; a name is 1 to 128 of A-Z a-z 0-9 . _ @ : -")
    return name


def check_type(name: str, value: object, want: str, valid: bool) -> None:
    if not valid:
        raise InvalidArgument(f"{name} is of type {type(value).__name__}, and has to be {want}")


class Key:
    """The secret of one incarnation of a candidate. It shows itself to nobody but the server."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text = secrets.token_urlsafe(32)

    def __repr__(self) -> str:
        return "<key>"

    def __reduce__(self) -> str:
        raise TypeError("a key cannot leave its process")


def hidden(text: str) -> str:
    """The text without what may be a key or a token, for what another program has sent back."""
    return re.sub(r"[A-Za-z0-9_-]{24,}", "…", text)


@dataclass(frozen=True)
class Address:
    """Where a server is."""

    secure: bool
    host: str
    port: int
    authority: str  # of the header Host
    path: str  # before that of the API, without a slash at the end


def address(server: str, insecure: bool) -> Address:
    """Reads a server's URL. Errors do not repeat it: it may contain a password."""
    url, port = _split(server)
    if url.scheme not in ("http", "https"):
        raise InvalidArgument("the server's address must begin with http:// or https://, as in http://127.0.0.1:8080")
    if "@" in server:
        raise InvalidArgument("the server's address must not contain a user or a password")
    # All of it is checked: of [::1].example, urlsplit names ::1 as the host.
    host = re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", url.netloc)
    if not host or re.search(r"[\s\x00-\x20\x7f?#]", server):
        raise InvalidArgument("the server's address is not one such as http://127.0.0.1:8080, without ? and #")
    name = host[1].strip("[]").lower()
    if url.scheme == "http" and not insecure and not _is_here(name):
        raise InvalidArgument(
            "the server is on another machine, and over http:// keys and credentials can be read on the way; "
            "use https://, or set insecure=True if the connection is encrypted otherwise"
        )
    secure = url.scheme == "https"
    return Address(secure, name, port or (443 if secure else 80), url.netloc, url.path.rstrip("/"))


def _split(server: str) -> tuple[SplitResult, int | None]:
    try:
        url = urlsplit(server)
        return url, url.port  # which only now is looked at
    except (ValueError, TypeError, AttributeError):
        raise InvalidArgument("the server's address is no URL; set one such as http://127.0.0.1:8080") from None


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def encoded(field: str, data: Any, room: float = math.inf, remedy: str = "", most: int = 0) -> tuple[Any, int]:
    """A copy of the data, which the program may change, if it can be written as JSON of that many bytes, and how many it
    has. If there is less room than usual, most says how much that is."""
    try:
        written = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{field} cannot be written as JSON: {error}") from None
    if data is None:
        raise InvalidArgument(f"{field} is None, and has to be something")
    if (size := len(written)) > room:
        raise PayloadTooLarge(f"{field} has {size} bytes of JSON, of {most or room} that there may be in all; {remedy}")
    return json.loads(written), size
