"""What commands on a workspace load: those that only read need neither diskcache nor rich."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_import_hygiene import STARTS_WITHOUT, loaded_by
from tests.workspace.spaces import filled


@pytest.mark.parametrize("command", ["tiers", "blocks"])
def test_a_command_that_reads_loads_only_what_it_needs(tmp_path: Path, command: str) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    assert loaded_by(command, "--workspace", str(space)) & (STARTS_WITHOUT | {"yaml", "platformdirs"}) == set()


def test_one_that_writes_loads_no_rich_into_a_pipe(tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    loaded = loaded_by("load", str(tmp_path / "trace.jsonl"), "--workspace", str(space))
    assert loaded & (STARTS_WITHOUT | {"yaml", "platformdirs"}) == {"diskcache"}
