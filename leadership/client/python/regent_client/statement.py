"""Verifies signed statements about leases, without a server: see Handle.statement. It needs the package cryptography,
as in pip install regent-client[statements]; Python's standard library has no signatures.

    keys = statement.Keys(json.load(jwks))  # of https://regent.example.com/.well-known/jwks.json
    claims = keys.verify(text, election="reports")

A statement proves that this token was granted to this leader, until then by the store's clock. It does not prove that the
leader still leads: it may have released, been ended, and there may be a newer token. A resource still compares tokens.
"""

from __future__ import annotations

import base64
import json
import re
import time
from typing import Any, Mapping

MAX_STATEMENT = 8 << 10  # bytes
MAX_AHEAD = 5  # seconds that the clock of this machine may be behind the store's
LONGEST = 24 * 3600 + 60  # seconds; more than any lease lasts

_TEXTS = {"election": r"[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?", "sub": r"[A-Za-z0-9._@:-]{1,128}", "principal": "(?s:.*)", "iss": "(?s:.*)"}
_ALGORITHMS = {("OKP", "Ed25519"): "EdDSA", ("EC", "P-256"): "ES256"}


class BadStatement(ValueError):
    """The statement is bad, has expired, or is about something else."""


class Keys:
    """The public keys of a server."""

    def __init__(self, jwks: Mapping[str, Any]) -> None:
        """`jwks` is a JSON Web Key Set. Keys of other kinds and for other uses are skipped. Keep it for some minutes, and
        read it again for a statement whose key is not known."""
        self._keys: dict[str, tuple[str, Any]] = {}
        for key in jwks["keys"]:
            by = _ALGORITHMS.get((str(key.get("kty")), str(key.get("crv"))))
            if by and key.get("alg", by) == by and key.get("use", "sig") == "sig" and key.get("kid"):
                try:
                    self._keys[str(key["kid"])] = by, _load(by, key)
                except ValueError:
                    continue  # it is no key

    def verify(self, statement: str, *, election: str = "", token: int = 0, now: float | None = None) -> dict[str, Any]:
        """The claims of a statement that one of the keys has signed, about this election and token if they are given, and
        that has not ended: election, fencingToken, sub (the leader), iat and exp (of the store's clock, in seconds since
        1970) and, if there are some, principal, iss, of and seat. `now` is in seconds since 1970, by default of this
        machine: a clock that is behind believes in the lease for as much longer. Raises BadStatement."""
        parts = statement.split(".")
        if len(parts) != 3 or len(statement) > MAX_STATEMENT:
            raise BadStatement("form: a statement has three parts, with dots between them")
        header, payload, signature = (_decode(part) for part in parts)
        try:
            head = _object(header)
        except ValueError:
            head = {}
        if set(head) != {"alg", "kid", "typ"} or head["typ"] != "regent+jwt" or not isinstance(head["kid"], str):
            raise BadStatement("header: it must have alg, kid and the typ regent+jwt, and nothing else")
        by, key = self._keys.get(head["kid"], ("", None))
        if not by:
            raise BadStatement("key: the statement's key is not known")
        if head["alg"] != by:
            raise BadStatement(f"algorithm: the key is for {by}")
        if not _signed(by, key, signature, f"{parts[0]}.{parts[1]}".encode()):
            raise BadStatement("signature: it is wrong")
        try:
            said = _object(payload)
        except ValueError:
            raise BadStatement("claims: they must be one JSON object with each name once and without spaces") from None
        _check(said, time.time() if now is None else now, election, token)
        return said


def _load(by: str, key: Mapping[str, Any]) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    except ImportError:
        raise ImportError("statements are verified with the package cryptography: pip install regent-client[statements]") from None
    x = _decode(key.get("x", ""))
    if by == "EdDSA":
        return ed25519.Ed25519PublicKey.from_public_bytes(x)
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\4" + x + _decode(key.get("y", "")))


def _signed(by: str, key: Any, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    if len(signature) != 64:
        return False
    try:
        if by == "EdDSA":
            key.verify(signature, message)
        else:
            r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            key.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _decode(text: str) -> bytes:
    """Reads base64url in its canonical form."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text) or len(text) % 4 == 1:
        raise BadStatement("form: each part must be base64url without padding")
    decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(decoded).rstrip(b"=").decode() != text:
        raise BadStatement("form: base64url must be in its canonical form")
    return decoded


def _object(text: bytes) -> dict[str, Any]:
    """Reads an object that is written without spaces and with each name once."""
    read = text.decode()
    try:
        found = json.loads(read)
        compact = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict) or compact != read:
        raise ValueError("not one compact object")
    return found


def _check(said: dict[str, Any], now: float, election: str, token: int) -> None:
    for name, form in _TEXTS.items():
        if not isinstance(said.get(name, ""), str) or not re.fullmatch(form, said.get(name, "")):
            raise BadStatement(f"claims: {name} is missing or wrong")
    for name in ("fencingToken", "iat", "exp"):
        if type(said.get(name)) is not int or not 0 < said[name] < 2**53:
            raise BadStatement(f"claims: {name} must be an integer from 1 to 2^53-1")
    if not 0 <= said["exp"] - said["iat"] <= LONGEST:
        raise BadStatement("claims: exp must be after iat, by the length of a lease")
    if now >= said["exp"]:
        raise BadStatement("expired: the lease has ended")
    if said["iat"] > now + MAX_AHEAD:
        raise BadStatement("not yet valid: the clock of this machine is behind the store's")
    if election and said["election"] != election:
        raise BadStatement(f"election: the statement is about {said['election']!r}")
    if token and said["fencingToken"] != token:
        raise BadStatement(f"token: the statement is about token {said['fencingToken']}")
