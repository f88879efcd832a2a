"""Formats of the agent's own state: what this program writes, and what it can still read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from abeyance.errors import UnknownState
from abeyance.values import Checkpoint, State

Migration = Callable[[Any], Any]


def based_on(base: Checkpoint | str) -> str:
    """Return the id of a checkpoint that a state may grow from.

    Raises ValueError where its state was brought to a newer version than it is kept under.
    """
    if isinstance(base, str):
        return base
    if base.kept_version is not None:
        raise ValueError(
            f"the checkpoint keeps its state under version {base.kept_version}:"
            " put the state whole once, and let it grow from there"
        )
    return base.id


class StateFormat:
    """A format of the agent's own state, at the version that this program writes.

    The service keeps a state as it is and reads nothing in it, so the program that goes on from
    one must know what it means. Older versions are brought to the newest by functions registered
    with `migrates`; a state of any other format or version is refused with UnknownState.
    """

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version
        self._migrations: dict[str, tuple[str, Migration]] = {}

    def migrates(
        self, from_version: str, to: str | None = None
    ) -> Callable[[Migration], Migration]:
        """Register the function that makes data of one version data of another; the newest by default.

        It gets a copy and returns what it made of it. Raises ValueError for a second function from
        a version, and where the versions would go round in a circle.
        """
        onto = self.version if to is None else to

        def register(migration: Migration) -> Migration:
            if from_version in self._migrations:
                raise ValueError(f"{self.name} {from_version} has its migration already")
            if from_version == self.version or from_version in self._after(onto):
                raise ValueError(f"{self.name}: from {from_version} to {onto} leads back")
            self._migrations[from_version] = (onto, migration)
            return migration

        return register

    def _after(self, version: str) -> list[str]:
        """The versions that one is brought through, itself first."""
        path = [version]
        while path[-1] in self._migrations:
            path.append(self._migrations[path[-1]][0])
        return path

    def state(self, data: Any) -> State:
        """Return a state of this format with this data."""
        return State(data, self.name, self.version)

    def grown(self, base: Checkpoint | str, append: Mapping[str, Sequence[Any]]) -> State:
        """Return a state that is an earlier checkpoint's with more in its lists, by their pointers."""
        return State(append, self.name, self.version, based_on(base))

    def read(self, state: State) -> State:
        """Return the state at this program's version. Raises UnknownState; `state` stays as it is."""
        if state.format != self.name or self._after(state.version)[-1] != self.version:
            raise UnknownState(state, self.name, self.version, sorted(self._known()))
        version, data = state.version, deepcopy(state.data)
        while version != self.version:
            version, migration = self._migrations[version]
            data = migration(data)
        return self.state(data)

    def _known(self) -> list[str]:
        return [one for one in self._migrations if self._after(one)[-1] == self.version]
