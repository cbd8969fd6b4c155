"""Tokens: who may ask the service for what.

A token is ``cbr_``, eight characters that name its line in the file, and 256 random bits. The file
has a JSON object on each line: name, role, times, and the salted hash of those bits.
"""

import contextlib
import errno
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from cbrank.atomic import atomic_write

ROLES = ("score", "learn", "admin")
"""Roles; each may what those before it may."""

_PREFIX = b"cbr_"
_ID = len(_PREFIX) + 8
_LENGTH = _ID + 43  # 32 random bytes in base64 without padding
_MOST_BYTES = 4 << 20  # some 15,000 tokens; a larger file is something else
_PATIENCE = 10  # seconds to wait for another process that changes the file
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_FORMS = {
    "id": re.compile(r"[\w-]{8}", re.ASCII),
    "salt": re.compile("[0-9a-f]{32}"),
    "hash": re.compile("[0-9a-f]{64}"),
    "made": _TIME,
    "expires": _TIME,
}
_KEYS = ("name", "role", "made", "expires", "id", "salt", "hash")


class Token(NamedTuple):
    """Whose token it is, its role and the second since 1970 in which it ends, if it does."""

    name: str
    role: str
    expires: float | None


class Entry(NamedTuple):
    """A line of the file."""

    token: Token
    made: float
    id: str
    salt: bytes
    hash: bytes

    def line(self) -> str:
        """Return the line."""
        name, role, expires = self.token
        facts = (
            name,
            role,
            when(self.made),
            None if expires is None else when(expires),
            self.id,
            self.salt.hex(),
            self.hash.hex(),
        )
        return json.dumps(dict(zip(_KEYS, facts, strict=True)), ensure_ascii=False)


# What an unknown id is compared with, so that it takes the time of a known one.
_NOBODY = Entry(Token("", "score", 0.0), 0.0, "", bytes(16), bytes(32))


class Tokens:
    """The tokens of a file, for a server that looks them up.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    ValueError
        If it is damaged; the sentence names the line.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "tokens")
    >>> secret, _ = make(path, "learn", "shop")
    >>> tokens = Tokens.open(path)
    >>> tokens.find(secret)
    Token(name='shop', role='learn', expires=None)
    >>> tokens.find("cbr_guess") is None
    True
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries = _by_id(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Tokens":
        """Read the tokens of a file."""
        return cls(Path(path))

    def __len__(self) -> int:
        return len(self._entries)

    def reload(self) -> str | None:
        """Read the file again; if that fails, keep the tokens and return the sentence why."""
        try:
            self._entries = _by_id(self.path)
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return f"{self.path} was not read again, and the tokens before stay: {reason}"
        return None

    def find(self, token: str | bytes) -> Token | None:
        """Return whose token it is, or None if it is nobody's or has expired.

        The time does not depend on the secret: the id leads to a line, which is no secret, and
        hashes are compared whole.
        """
        given = token if isinstance(token, bytes) else token.encode(errors="replace")
        if len(given) != _LENGTH or not given.startswith(_PREFIX):
            return None
        entry = self._entries.get(given[len(_PREFIX) : _ID], _NOBODY)
        if not hmac.compare_digest(_hash(given[_ID:], entry.salt), entry.hash):
            return None
        found = entry.token
        return found if found.expires is None or time.time() < found.expires else None


def _hash(secret: bytes, salt: bytes) -> bytes:
    # One fast hash is right here: nobody guesses 256 random bits, as one guesses passwords, and a
    # slow hash such as scrypt would let strangers burn the processor with wrong tokens.
    return hashlib.blake2b(secret, digest_size=32, salt=salt, person=b"cbrank token").digest()


def _by_id(path: Path) -> dict[bytes, Entry]:
    return {entry.id.encode(): entry for entry in read(path)}


# The file ----------------------------------------------------------------------------------------


def make(
    path: Path, role: str, name: str | None = None, seconds: float | None = None
) -> tuple[str, Entry]:
    """Make a token, and store its hash.

    Parameters
    ----------
    path : path
        The file; if there is none, it is made, for its owner alone.
    role : str
        One of `ROLES`.
    name : str, optional
        Whose it is; otherwise the role and a number.
    seconds : float, optional
        After how long it ends.

    Returns
    -------
    token : str
        The token, which is stored nowhere.
    entry : Entry
        What is stored.
    """
    with _changed(path) as entries:
        names = {entry.token.name for entry in entries}
        if name is None:
            name = next(
                free for n in range(1, len(names) + 2) if (free := f"{role}-{n}") not in names
            )
        if fault := _fault_of_name(name):
            raise ValueError(f"the name {name!r} {fault}.")
        if name in names:
            raise ValueError(f"{path} has a token named {name!r}: give another name, or remove it.")
        ids = {entry.id for entry in entries}
        number = next(free for _ in range(100) if (free := secrets.token_urlsafe(6)) not in ids)
        secret, salt, now = secrets.token_urlsafe(32), secrets.token_bytes(16), int(time.time())
        token = Token(name, role, None if seconds is None else now + math.ceil(seconds))
        entries.append(Entry(token, now, number, salt, _hash(secret.encode(), salt)))
    return f"{_PREFIX.decode()}{number}{secret}", entries[-1]


def remove(path: Path, name: str) -> None:
    """Remove the token of a name from a file.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    with _changed(path) as entries:
        kept = [entry for entry in entries if entry.token.name != name]
        if len(kept) == len(entries):
            raise ValueError(f"{path} has no token named {name!r}.")
        entries[:] = kept


def exposure(path: Path) -> str | None:
    """Return a sentence if others than its owner may read or change the file."""
    mode = path.stat().st_mode
    if os.name != "posix" or not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    may = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
    return f"others than its owner may {may} {path}: chmod 600 keeps it to the owner."


def when(seconds: float) -> str:
    """Return a time as the file has it.

    Examples
    --------
    >>> when(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


@contextlib.contextmanager
def _changed(path: Path) -> Iterator[list[Entry]]:
    """Give the entries of a file to be changed, and write them; one process at a time."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {target.parent}", str(path))
    file = target.with_name(f"{target.name}.cbrank-lock")
    lock = FileLock(file, timeout=_PATIENCE, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"{path} is being changed by another process: try again.") from None
    try:
        entries = read(path) if target.exists() else []
        yield entries
        _write(path, entries)
    finally:
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            file.unlink()
        lock.release()


def _write(path: Path, entries: list[Entry]) -> None:
    before = path.stat() if path.exists() else None
    with atomic_write(path) as file:
        if os.name == "posix" and before is None:
            os.fchmod(file.fileno(), 0o600)
        elif os.name == "posix" and before is not None and os.geteuid() == 0:
            os.fchown(file.fileno(), before.st_uid, before.st_gid)  # still its owner's
        file.writelines(f"{entry.line()}\n".encode() for entry in entries)


def read(path: Path) -> list[Entry]:
    """Read the lines of a file.

    Raises
    ------
    ValueError
        If it is damaged; the sentence names the line.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file: give the file of the tokens.")
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(f"{path} has more than {_MOST_BYTES >> 20} MiB: it is no file of tokens.")
    entries = list[Entry]()
    names, ids = dict[str, int](), dict[str, int]()
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            entry = _entry(line)
            for what, known, value in (("name", names, entry.token.name), ("id", ids, entry.id)):
                if known.setdefault(value, number) != number:
                    raise ValueError(f"{what} is that of line {known[value]}")
        except (ValueError, RecursionError) as error:
            why = "it is no JSON object" if isinstance(error, RecursionError) else error
            raise ValueError(
                f"{path}, line {number}: {why}. Mend or remove the line; a removed token is void."
            ) from None
        entries.append(entry)
    return entries


def _entry(line: bytes) -> Entry:
    try:
        facts: Any = json.loads(line.decode(), object_pairs_hook=_once, parse_int=float)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("it is no JSON object") from None
    if not isinstance(facts, dict) or set(facts) != set(_KEYS):
        raise ValueError(f"it must have {', '.join(_KEYS)}, and nothing else")
    if fault := _fault_of_name(facts["name"]):
        raise ValueError(f"name {fault}")
    if facts["role"] not in ROLES:
        raise ValueError(f"role is none of {', '.join(ROLES)}")
    for key, form in _FORMS.items():
        value = facts[key]
        if not (isinstance(value, str) and form.fullmatch(value)) and (key, value) != (
            "expires",
            None,
        ):
            raise ValueError(f"{key} is not as it is written")
    expires = None if facts["expires"] is None else _seconds("expires", facts["expires"])
    return Entry(
        Token(facts["name"], facts["role"], expires),
        _seconds("made", facts["made"]),
        facts["id"],
        bytes.fromhex(facts["salt"]),
        bytes.fromhex(facts["hash"]),
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    facts = dict(pairs)
    if len(facts) < len(pairs):
        raise ValueError("a key stands there twice")
    return facts


def _seconds(key: str, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(f"{key} is no time") from None


def _fault_of_name(name: Any) -> str | None:
    """Return what is wrong with a name, which goes into logs and onto terminals."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= 64
        and name.isprintable()
        and name == name.strip()
    ):
        return None
    return "must be 1 to 64 printable characters, without spaces at its ends"
