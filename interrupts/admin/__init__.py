"""Tools and freezes as services change them; what the engine did, to be read."""

from interrupts.admin import engine, freezes, tools

__all__ = ["engine", "freezes", "tools"]
