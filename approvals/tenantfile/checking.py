"""Every fault of the documents of a tenant file, before anything is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from approvals.policy import budget_faults, validate_policy
from approvals.policy.limits import limit_faults
from approvals.policy.syntax import MAX_CHARACTERS
from approvals.services.grants import Entry, parts
from approvals.tenantfile.groups import members_of
from approvals.tenantfile.reading import label
from approvals.tenantfile.values import secret_faults as value_faults
from config.errors import pointer
from config.globs import glob_fault, matches
from interrupts.declarations import check_tool, secret_faults
from tenants.api.body import FREE, members, nullable, text
from tenants.api.checks import Found, compile_check
from tenants.models import Role, Tenant, User
from tenants.scope import tenant_scope
from tenants.selectors import secret_names
from tenants.services.people import MemberWanted, known_people, others_emails

Document = Mapping[str, Any]
Fault = tuple[str, str]

USERNAME: Final = text(
    150, least=1, pattern=r"[\w.@+-]+", description="Must be letters, digits and @ . + - _ only."
)
NAME: Final = text(
    100,
    least=1,
    pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    description="Must be letters, digits and . - _ only.",
)
LIMITED: Final = members(
    {
        "tools": {"type": "array", "items": text(100), "minItems": 1, "maxItems": 1000},
        "condition": text(MAX_CHARACTERS, least=1),
    }
)
MAY_DECIDE: Final = {"oneOf": [text(100), LIMITED]}
GIVEN: Final = {"type": "array", "items": MAY_DECIDE, "maxItems": 1000}
MEMBER: Final = members(
    {
        "username": USERNAME,
        "email": text(254, least=3),
        "role": {"type": "string", "enum": [str(role) for role in Role]},
    },
    {"may_decide": GIVEN},
)
IN_GROUP: Final = {"type": "array", "items": USERNAME, "maxItems": 10_000}
# A group is a list of its members, or its members with what they may decide by being in it.
GROUP: Final = {"oneOf": [IN_GROUP, members({"members": IN_GROUP}, {"may_decide": GIVEN})]}
AGENT: Final = members({"name": NAME}, {"owner": nullable(USERNAME), "daily_budget": FREE})
SECRET: Final = members({"name": NAME}, {"env": text(200, least=1), "file": text(1000, least=1)})
DOCUMENT: Final = members(
    {
        "tenant": text(
            63,
            least=1,
            pattern=r"[a-z0-9][a-z0-9_-]*",
            description="Must be small letters, digits and - _ only.",
        )
    },
    {
        "name": text(200, least=1),
        "members": {"type": "array", "items": MEMBER, "maxItems": 10_000},
        "groups": {
            "type": "object",
            "additionalProperties": GROUP,
            "maxProperties": 1000,
        },
        "agents": {"type": "array", "items": AGENT, "maxItems": 10_000},
        "secrets": {"type": "array", "items": SECRET, "maxItems": 1000},
        "tools": {"type": "array", "items": FREE, "maxItems": 1000},
        "policy": FREE,
    },
)
_check_shape = compile_check(DOCUMENT)


def check_documents(documents: Sequence[Any]) -> list[str]:
    """Return what is wrong, a line each: ``acme: tools/2/executor/url: why``; none: apply it.

    Reads which people there are; changes nothing.
    """
    faults = [
        f"{label(document, number)}: {place.lstrip('/') or 'document'}: {detail}"
        for number, document in enumerate(documents, 1)
        for place, detail in _document_faults(document)
    ]
    if faults:
        return faults
    return [*_repeated_tenants(documents), *_other_people(documents)]


def _document_faults(document: Any) -> list[Fault]:
    found: Found = []
    _check_shape(document, "", found)
    if found:
        return [(fault["pointer"], fault["detail"]) for fault in found]
    return [
        *_people_faults(document),
        *_group_faults(document),
        *_agent_faults(document),
        *_secret_faults(document),
        *_tool_faults(document),
        *_policy_faults(document),
    ]


def _people_faults(document: Document) -> Iterator[Fault]:
    people = document.get("members", [])
    yield from _repeated("members", "username", people)
    for index, member in enumerate(people):
        try:
            validate_email(member["email"])
        except ValidationError:
            yield pointer("members", index, "email"), "Must be an e-mail address."
        yield from _given_faults(member, pointer("members", index))


def _given_faults(holder: Document, at: str) -> Iterator[Fault]:
    for place, entry in enumerate(holder.get("may_decide", [])):
        found = entry_faults(entry)
        yield from ((at + pointer("may_decide", place) + where, said) for where, said in found)


def entry_faults(entry: Entry) -> Iterator[Fault]:
    """Yield what is wrong with an entry of what somebody may decide, by its place in the entry."""
    if isinstance(entry, str):
        if detail := glob_fault(entry):
            yield "", detail
        return
    for place, glob in enumerate(entry["tools"]):
        if detail := glob_fault(glob):
            yield pointer("tools", place), detail
    for detail in limit_faults(entry["condition"]):
        yield pointer("condition"), detail


def _group_faults(document: Document) -> Iterator[Fault]:
    known = _usernames(document)
    check_name = compile_check(NAME)
    for name, group in document.get("groups", {}).items():
        at = pointer("groups", name)
        wrong: Found = []
        check_name(name, at, wrong)
        yield from ((fault["pointer"], fault["detail"]) for fault in wrong)
        if isinstance(group, Mapping):
            yield from _given_faults(group, at)
        usernames = members_of(group)
        inside = at if usernames is group else at + pointer("members")
        for index, username in enumerate(usernames):
            if username not in known:
                yield inside + pointer(index), "No such member."
            if username in usernames[:index]:
                yield inside + pointer(index), "Is there twice."


def _agent_faults(document: Document) -> Iterator[Fault]:
    known = _usernames(document)
    agents = document.get("agents", [])
    yield from _repeated("agents", "name", agents)
    for index, agent in enumerate(agents):
        if agent.get("owner") is not None and agent["owner"] not in known:
            yield pointer("agents", index, "owner"), "No such member."
        for place, detail in budget_faults(agent.get("daily_budget", {})):
            yield pointer("agents", index, "daily_budget") + place, detail


def _secret_faults(document: Document) -> Iterator[Fault]:
    entries = document.get("secrets", [])
    yield from _repeated("secrets", "name", entries)
    for index, member, detail in value_faults(entries, _secrets_kept(document)):
        yield pointer("secrets", index, member), detail


def _secrets_kept(document: Document) -> frozenset[str]:
    """Return the names of the secrets that the tenant has already, where there is one."""
    tenant = Tenant.objects.filter(slug=document["tenant"]).first()
    if tenant is None:
        return frozenset()
    with tenant_scope(tenant.pk):
        return secret_names()


def _tool_faults(document: Document) -> Iterator[Fault]:
    tools = document.get("tools", [])
    yield from _repeated("tools", "name", tools)
    faults = [(index, fault) for index, tool in enumerate(tools) for fault in check_tool(tool)]
    for index, (place, detail) in faults:
        yield pointer("tools", index) + place, detail
    if not faults:
        named = document.get("secrets")
        known = _secrets_kept(document) if named is None else {one["name"] for one in named}
        for place, detail in secret_faults(tools, known):
            yield pointer("tools") + place, detail


def _policy_faults(document: Document) -> Iterator[Fault]:
    groups = {name: members_of(group) for name, group in document.get("groups", {}).items()}
    for place, detail in validate_policy(document.get("policy", {}), groups):
        yield pointer("policy") + place, detail


def _repeated(section: str, member: str, entries: Sequence[Document]) -> Iterator[Fault]:
    seen: set[Any] = set()
    for index, entry in enumerate(entries):
        value = entry.get(member)
        if isinstance(value, str) and value in seen:
            yield pointer(section, index, member), "Is there twice."
        elif isinstance(value, str):
            seen.add(value)


def _usernames(document: Document) -> set[str]:
    return {member["username"] for member in document.get("members", [])}


def _repeated_tenants(documents: Iterable[Document]) -> list[str]:
    counted = Counter(document["tenant"] for document in documents)
    return [
        f"{slug}: tenant: Is there {count} times in the file."
        for slug, count in counted.items()
        if count > 1
    ]


def _other_people(documents: Iterable[Document]) -> list[str]:
    """A username is one person's over the service: whoever else has it must be told apart."""
    wanted = [
        (document["tenant"], index, MemberWanted(one["username"], one["email"], one["role"]))
        for document in documents
        for index, one in enumerate(document.get("members", []))
    ]
    people = {user.username: user for user in known_people({one.username for *_, one in wanted})}
    for _, _, one in wanted:
        people.setdefault(one.username, User(username=one.username, email=one.email))
    return [
        f"{tenant}: members/{index}/email: This username is a person's with another e-mail address."
        for tenant, index, one in wanted
        if others_emails([one], people)
    ]


def unmatched_globs(document: Document) -> list[str]:
    """Return notes on what may be decided but names no tool: right or wrong, it gives nothing."""
    names = [tool["name"] for tool in document.get("tools", [])]
    return [
        f"{where}/may_decide/{place}: {glob} matches no tool"
        for where, holder in _holders(document)
        for place, entry in enumerate(holder.get("may_decide", []))
        for glob in parts(entry)[0]
        if glob != "*" and not any(matches(glob, name) for name in names)
    ]


def _holders(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield everybody of whom it is said what they may decide, with the place of it."""
    for index, member in enumerate(document.get("members", [])):
        yield f"members/{index}", member
    for name, group in document.get("groups", {}).items():
        if isinstance(group, Mapping):
            yield f"groups/{name}", group
