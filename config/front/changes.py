"""Who waits for which row's version, and the one statement that finds out who need not any more."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg import sql

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 0.2
# Most waits end soon after they began: while few wait, and one of them began just now.
LOOK_SOON_SECONDS = 0.02
SOON_SECONDS = 1.0
FEW = 50
LONGEST_PAUSE_SECONDS = 2.0


class Kind(StrEnum):
    """What changes: a run's state, a run's journal, the tenant's journal."""

    STATE = "state"
    RUN = "run"
    TENANT = "tenant"


class Channel(NamedTuple):
    kind: Kind
    id: UUID


NEWER = sql.SQL(
    "SELECT r.id, r.{column} FROM unnest(%s::uuid[], %s::bigint[]) AS w (id, version)"
    " JOIN {table} r ON r.id = w.id AND r.{column} > w.version"
)
LOOKS: Mapping[Kind, sql.Composed] = MappingProxyType(
    {
        kind: NEWER.format(table=sql.Identifier(table), column=sql.Identifier(column))
        for kind, table, column in (
            (Kind.STATE, "interrupts_run", "state_version"),
            (Kind.RUN, "interrupts_run", "journal_seq"),
            (Kind.TENANT, "tenants_tenant", "journal_seq"),
        )
    }
)
# Each look is up to thousands of single-row look-ups by primary key, never a scan of the table.
PLAN = "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off"


class Changes:
    """Waits of one process: however many there are, one connection and one statement a look.

    The rows are the truth, so no notification can be lost: a look compares what each waiter has
    seen with what is there. While nobody waits nothing is asked.
    """

    def __init__(self, connect: Mapping[str, Any]) -> None:
        options = f"{connect.get('options', '')} {PLAN}".strip()
        self.parameters = {**connect, "options": options, "application_name": "abeyance front"}
        self.waiters: dict[Channel, dict[asyncio.Future[bool], int]] = defaultdict(dict)
        self.connection: psycopg.AsyncConnection | None = None
        self.looker: asyncio.Task[None] | None = None
        self.newest = 0.0  # when the last wait began, by the loop's clock
        self.closed = False

    def after(self, channel: Channel, version: int) -> asyncio.Future[bool]:
        """Return a future that is True once the version is passed, False when the process ends.

        Whoever stops waiting cancels it.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        if self.closed:
            waiter.set_result(False)
            return waiter
        self.waiters[channel][waiter] = version
        self.newest = loop.time()
        waiter.add_done_callback(lambda done: self._forget(channel, done))
        if self.looker is None or self.looker.done():
            self.looker = asyncio.create_task(self._look_while_somebody_waits())
        return waiter

    async def close(self) -> None:
        """Let everybody go: each answers with what it has."""
        self.closed = True
        for waiting in list(self.waiters.values()):
            for waiter in list(waiting):
                if not waiter.done():
                    waiter.set_result(False)
        if self.looker is not None:
            self.looker.cancel()
        await self._hang_up()

    def _forget(self, channel: Channel, waiter: asyncio.Future[bool]) -> None:
        waiting = self.waiters.get(channel, {})
        waiting.pop(waiter, None)
        if not waiting:
            self.waiters.pop(channel, None)

    async def _look_while_somebody_waits(self) -> None:
        failed = LOOK_EVERY_SECONDS
        pause = LOOK_SOON_SECONDS
        while self.waiters:
            await asyncio.sleep(pause)
            try:
                await self._look()
                failed, pause = LOOK_EVERY_SECONDS, self._pause()
            except psycopg.Error as fault:
                logger.warning("can't look for changes: %s", fault)
                await self._hang_up()
                failed = pause = min(failed * 2, LONGEST_PAUSE_SECONDS)

    def _pause(self) -> float:
        waited = asyncio.get_running_loop().time() - self.newest
        few = len(self.waiters) <= FEW
        return LOOK_SOON_SECONDS if few and waited < SOON_SECONDS else LOOK_EVERY_SECONDS

    async def _look(self) -> None:
        if self.connection is None or self.connection.closed:
            self.connection = await psycopg.AsyncConnection.connect(
                **self.parameters, autocommit=True
            )
        for kind, look in LOOKS.items():
            seen = {
                channel.id: min(waiting.values())
                for channel, waiting in self.waiters.items()
                if channel.kind is kind
            }
            if seen:
                found = await self.connection.execute(look, [list(seen), list(seen.values())])
                for row_id, version in await found.fetchall():
                    self._wake(Channel(kind, row_id), version)

    def _wake(self, channel: Channel, version: int) -> None:
        for waiter, seen in list(self.waiters.get(channel, {}).items()):
            if seen < version and not waiter.done():
                waiter.set_result(True)

    async def _hang_up(self) -> None:
        if self.connection is not None:
            await self.connection.close()
        self.connection = None
