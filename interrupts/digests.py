"""What tells one call from another: digests of canonical forms (RFC 8785)."""

from config import jsontext


def call_digest(tool: str, arguments: bytes) -> str:
    """The digest of ``{"arguments", "tool"}`` in canonical form."""
    return jsontext.digest_bytes(
        b'{"arguments":' + arguments + b',"tool":' + jsontext.canonical(tool) + b"}"
    )


def step_digest(tool: str, number: int, arguments: bytes) -> str:
    """The digest of ``{"arguments", "tool", "tool_version"}`` in canonical form."""
    name = jsontext.canonical(tool)
    return jsontext.digest_bytes(
        b'{"arguments":%b,"tool":%b,"tool_version":%d}' % (arguments, name, number)
    )
