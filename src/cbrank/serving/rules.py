"""Who may what: one table of paths, and what is asked of those who come."""

import functools
import re
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from cbrank.serving.errors import Refused
from cbrank.serving.tokens import ROLES, Tokens

Scope = MutableMapping[str, Any]
Headers = dict[bytes, bytes]

JSON = "application/json"
BYTES = "application/octet-stream"
MODEL = "/model"


class Rule(NamedTuple):
    """Who may use a path by a method, and the types of body that it takes; "" is none given."""

    method: str
    path: str
    role: str | None
    types: tuple[str, ...] = ()


# All that can be reached: what is not here is answered by 404 or 405, so a route that is forgotten is
# closed to everyone. For a role of None nobody is asked. HEAD goes wherever GET does.
RULES = (
    Rule("GET", "/", None),  # the page has no data: these come as events
    Rule("GET", "/live/{file}", None),
    Rule("GET", "/events", "score"),
    Rule("GET", "/metrics", "score"),
    Rule("GET", "/openapi.json", "score"),
    Rule("GET", "/ping", None),
    Rule("GET", "/health", None),
    Rule("GET", "/version", "score"),
    Rule("GET", "/v2/health/live", None),
    Rule("GET", "/v2/health/ready", None),
    Rule("GET", "/v2", "score"),
    Rule("GET", "/v2/models/{model}", "score"),
    Rule("GET", "/v2/models/{model}/ready", "score"),
    Rule("GET", "/v2/models/{model}/versions/{version}", "score"),
    Rule("GET", "/v2/models/{model}/versions/{version}/ready", "score"),
    # Clients of this protocol leave the type out, or send numbers after the JSON.
    Rule("POST", "/v2/models/{model}/infer", "score", (JSON, BYTES, "")),
    Rule("POST", "/v2/models/{model}/versions/{version}/infer", "score", (JSON, BYTES, "")),
    Rule("POST", "/invocations", "score", (JSON, "text/csv")),
    Rule("POST", "/score", "score", (JSON,)),
    Rule("POST", "/learn", "learn", (JSON,)),
    Rule("GET", MODEL, "admin"),
    Rule("POST", MODEL, "admin", (BYTES,)),
)
# Browsers send no headers of ours with the events of the page.
_TOKEN_IN_QUERY = ("/events",)
_IN_QUERY = re.compile(rb"(?:\A|&)token=([^&]*)")
_RANKS = {None: -1} | {role: rank for rank, role in enumerate(ROLES)}
_AS_WRITTEN = {kind.encode(): kind for kind in (JSON, BYTES)}
# Headers that decide who asks and how a body is read. If one came twice, the guard could go by one value and
# an endpoint, or a proxy, by the other.
_ONCE = (
    b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"idempotency-key",
    b"inference-header-content-length", b"origin", b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site",
)  # fmt: skip
_STRANGER = "without tokens, no page of another origin is answered."
_SAME_ORIGIN = (b"same-origin", b"none")  # none: the user typed the address


class Place(NamedTuple):
    """A path, as it is written in the table, and its rules by method."""

    template: str
    rules: dict[str, Rule]
    open: bool  # whether nobody is asked


def _places() -> dict[str, Place]:
    places = dict[str, Place]()
    for template in dict.fromkeys(rule.path for rule in RULES):
        rules = {rule.method: rule for rule in RULES if rule.path == template}
        if "GET" in rules:
            rules["HEAD"] = rules["GET"]
        open_ = all(rule.role is None for rule in rules.values())
        places[template] = Place(template, rules, open_)
    return places


_PLACES = _places()
_EXACT = {template: place for template, place in _PLACES.items() if "{" not in template}
_PATTERNS = [
    (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))), place)
    for template, place in _PLACES.items()
    if "{" in template
]


def find_place(path: str) -> Place | None:
    """Return the rules of a path, or None if there is nothing.

    Examples
    --------
    >>> find_place("/v2/models/shop/infer").template
    '/v2/models/{model}/infer'
    >>> find_place("/models") is None
    True
    """
    place = _EXACT.get(path)
    if place is None:
        place = next((place for form, place in _PATTERNS if form.fullmatch(path)), None)
    return place


def headers_of(scope: Scope) -> Headers:
    """Return the headers of a request; refuse one that has two values where only one can count.

    Examples
    --------
    >>> headers_of({"headers": [(b"host", b"localhost"), (b"accept", b"a/b"), (b"accept", b"c/d")]})
    {b'host': b'localhost', b'accept': b'c/d'}
    """
    pairs = scope["headers"]
    headers: Headers = dict(pairs)
    if len(headers) < len(pairs):
        names = [name for name, _ in pairs]
        for name in _ONCE:
            if names.count(name) > 1:
                raise Refused(400, f"the header {name.decode()} comes twice: send it once.")
    return headers


def who_asks(
    tokens: Tokens | None, place: Place | None, scope: Scope, headers: Headers
) -> tuple[str, int]:
    """Return the name and the rank of who asks, or refuse.

    Without tokens everyone on this machine may everything, but for the pages of others in a
    browser here. With tokens, nobody without one learns which paths there are.
    """
    if tokens is None:
        _refuse_strangers(scope, headers)
        return "", len(ROLES)
    if place is not None and place.open:
        return "", -1
    token = tokens.find(_token(scope, headers))
    if token is None:
        raise _no_token(headers)
    return token.name, _RANKS[token.role]


def rule_for(place: Place | None, method: str, rank: int) -> Rule:
    """Return the rule by which a request goes, or refuse."""
    if place is None:
        raise Refused(404, "there is nothing at this path.")
    rule = place.rules.get(method)
    if rule is None:
        allow = ", ".join(sorted(place.rules))
        raise Refused(405, f"this path takes {allow}.", headers={"allow": allow})
    if rank < _RANKS[rule.role]:
        raise Refused(403, f"this needs a token of role {rule.role}.")
    return rule


def kind_of(rule: Rule, headers: Headers) -> str:
    """Return the media type of a body, if the rule takes it, or refuse."""
    given = headers.get(b"content-type", b"")
    kind = _AS_WRITTEN.get(given)
    if kind is None:
        kind = given.partition(b";")[0].strip().lower().decode("latin-1")
    if kind not in rule.types:
        wanted = " or ".join(filter(None, rule.types))
        raise Refused(415, f"the body must be {wanted}, and Content-Type must say so.")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise Refused(415, "the body must not be compressed: leave Content-Encoding out.")
    return kind


def _token(scope: Scope, headers: Headers) -> bytes:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return token.strip()
    if scope["path"] in _TOKEN_IN_QUERY:
        found = _IN_QUERY.search(scope.get("query_string", b""))
        return found[1] if found else b""
    return b""


def _no_token(headers: Headers) -> Refused:
    if b"authorization" in headers:
        sentence, how = "the token is unknown or has ended.", 'Bearer error="invalid_token"'
    else:
        sentence, how = "a token is needed: Authorization: Bearer TOKEN.", "Bearer"
    return Refused(401, sentence, headers={"www-authenticate": how})


def _refuse_strangers(scope: Scope, headers: Headers) -> None:
    """Refuse what the page of another origin makes a browser on this machine send.

    Such a page can have a name of its own lead to this machine, which Host then tells, or send to
    this machine from where it is. Origin tells the latter, and for images, scripts and links, which have
    no Origin, Sec-Fetch-Site does.
    """
    host = headers.get(b"host", b"")
    if not is_loopback(host):
        raise Refused(403, "without tokens, the Host of a request must be localhost or 127.0.0.1.")
    origin = headers.get(b"origin")
    own = (b"http://" + host.lower(), b"https://" + host.lower())
    if origin is not None and origin.lower() not in own:
        raise Refused(403, _STRANGER)
    site = headers.get(b"sec-fetch-site")
    if site is not None and site not in _SAME_ORIGIN and not _is_link_to_page(scope, headers):
        raise Refused(403, _STRANGER)


def _is_link_to_page(scope: Scope, headers: Headers) -> bool:
    """Say whether the user follows a link to the page, which has no data of its own."""
    return (
        scope["method"] == "GET"
        and scope["path"] == "/"
        and headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-dest") == b"document"
    )


@functools.lru_cache(256)
def is_loopback(host: bytes) -> bool:
    """Say whether a Host header names this machine to itself.

    Examples
    --------
    >>> [is_loopback(host) for host in (b"127.0.0.1:8000", b"[::1]", b"evil.example", b"")]
    [True, True, False, False]
    """
    found = re.fullmatch(rb"(\[::1\]|[a-z0-9.-]+?)\.?(:[0-9]{1,5})?", host.lower())
    name = found[1] if found else b""
    if name in (b"localhost", b"[::1]") or name.endswith(b".localhost"):
        return True
    return re.fullmatch(rb"127(\.[0-9]{1,3}){3}", name) is not None
