"""Where the demo keeps what it needs, in the service's data folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from config.supervisor.paths import DataFolder, data_folder

TENANT = "acme"


@dataclass(frozen=True, slots=True)
class Places:
    """The demo's own folder, which only its owner can look into."""

    folder: Path
    tenant: str = TENANT

    @classmethod
    def of(cls, data: DataFolder) -> Places:
        return cls(data.root / "demo")

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> Places:
        """Those of the service that this environment names."""
        return cls.of(data_folder(environ))

    @property
    def tenant_file(self) -> Path:
        """The tenant as it was applied last, with the far end's address in it."""
        return self.folder / "tenant.yaml"

    @property
    def credentials(self) -> Path:
        return self.folder / "credentials.json"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @property
    def merchant_key(self) -> Path:
        """What somebody needs who calls the far end without the service."""
        return self.folder / "merchant-key"

    @property
    def address(self) -> Path:
        """The far end's address."""
        return self.folder / "far-end"

    @property
    def runs(self) -> Path:
        """Which run works on which request, until all are done."""
        return self.folder / "runs.json"
