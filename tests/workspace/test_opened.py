"""An open workspace: what is loaded stays, what is only tried out does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault, InputError, ManagerError
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.text_keys import label_of
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.tiering.topology_write import topology_as_toml
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.workspace import Workspace, open_workspace
from kvtier_cli.workspace.found import make_workspace
from kvtier_cli.workspace.lookup import look_up as workspace_look_up
from kvtier_cli.workspace.snapshot import primary_lists
from kvtier_cli.workspace.state import Faults
from tests.workspace.spaces import TOKENS, files_of, filled, loaded, topology, trace

FIRST, SECOND = [0, 1, 2, 3], [4, 5, 6, 7]
"""Two prompts; a CPU tier of four blocks has the second one only."""


def look_up(space: Workspace, *labels: str, load_filter: object = None) -> RequestStory:
    parse = parse_tier_filter() if load_filter is None else parse_tier_filter(load_filter)
    story = workspace_look_up(space, labels, parse).story
    assert story is not None
    return story


def outcomes(story: RequestStory) -> list[str]:
    return [block.outcome.value for block in story.blocks]


def test_a_load_has_the_figures_of_a_replay(tmp_path: Path) -> None:
    file = trace(tmp_path / "t.jsonl", [FIRST, SECOND, FIRST, [0, 1, 9], [4, 5]])
    with TraceSource(str(file)) as source:
        expected = TraceRun([source], topology()).run()
    make_workspace(tmp_path / "space", topology())
    assert loaded(tmp_path / "space", file) == expected


def test_what_was_loaded_is_there_with_its_bytes(tmp_path: Path) -> None:
    with open_workspace(filled(tmp_path, [FIRST, SECOND]), write=True) as space:
        assert [tier.size() for tier in space.tiers] == [8, 8]
        for tier in space.tiers:
            assert tier.store.read(list(tier.blocks())) == {}


def test_a_lookup_tells_the_tiers_of_blocks_that_earlier_processes_stored(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    with open_workspace(space) as opened:
        assert outcomes(look_up(opened, "4", "5")) == ["primary", "primary"]
    with open_workspace(space) as opened:
        story = look_up(opened, "0", "1", "2", "99", "3")
        assert outcomes(story) == ["promoted", "promoted", "promoted", "absent", "unreached"]
        assert [block.name for block in story.blocks] == ["0", "1", "2", "99", "3"]
    with open_workspace(space) as opened:
        assert outcomes(look_up(opened, "0", "1", load_filter=[])) == ["filtered", "unreached"]


def test_a_label_that_stands_for_several_blocks_is_not_looked_up(tmp_path: Path) -> None:
    with open_workspace(filled(tmp_path, [[1, 2], [3, 2]])) as opened:
        found = workspace_look_up(opened, ["2"], parse_tier_filter())
        assert found.story is None
        assert len(found.resolved.ambiguous["2"]) == 2


def test_a_lookup_changes_nothing_in_the_folder_nor_for_the_next_one(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    before = files_of(space)
    for _ in range(2):
        with open_workspace(space) as opened:
            assert outcomes(look_up(opened, "0", "1", "2")) == ["promoted"] * 3
        assert files_of(space) == before


def test_a_run_that_stores_changes_nothing_either_when_the_workspace_is_only_read(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    before = files_of(space)
    file = trace(tmp_path / "more.jsonl", [[8, 9], [10, 11, 12, 13], FIRST])
    with TraceSource(str(file)) as source, open_workspace(space) as opened:
        opened.run([source]).run()
        with pytest.raises(ManagerError, match="opened to be read"):
            opened.save()
    assert files_of(space) == before


def test_after_a_lookup_that_is_committed_a_promoted_block_is_a_primary_hit(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    with open_workspace(space, write=True) as opened:
        assert outcomes(look_up(opened, "0", "1", "99")) == ["promoted", "promoted", "absent"]
    with open_workspace(space) as opened:
        assert outcomes(look_up(opened, "0", "1", "99")) == ["primary", "primary", "absent"]
        assert [tier.size() for tier in opened.tiers] == [8, 8], "a lookup stores nothing"
        assert opened.state.totals["nvme"].promoted == 2


def test_the_same_ids_behind_other_prefixes_hit_nothing_of_an_earlier_trace(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND], topology(primary=100))
    figures = loaded(space, trace(tmp_path / "other.jsonl", [[9, 0, 1, 2, 3], [3, 2, 1, 0]]))
    assert figures["blocks_loaded"] == 0
    assert loaded(space, trace(tmp_path / "again.jsonl", [FIRST]))["blocks_loaded"] == 4


def test_ids_taken_as_they_are_hit_whatever_is_in_front_of_them(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST], topology(primary=100, identity="id"))
    assert loaded(space, trace(tmp_path / "other.jsonl", [[3, 2, 1, 0]]))["blocks_loaded"] == 4


def test_the_oldest_block_goes_first_after_reopening_too(tmp_path: Path) -> None:
    """Loads are uses as well, though they are written only at the close."""
    space = filled(tmp_path, [[0], [1], [2], [0]], topology(primary=1, nvme=3))
    loaded(space, trace(tmp_path / "more.jsonl", [[3]]))
    with open_workspace(space) as opened:
        labels = [str(key).partition(":")[0] for key in opened.tiers[0].blocks()]
    assert labels == ["2", "0", "3"]


def test_blocks_of_another_size_are_refused(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST])
    file = trace(tmp_path / "small.jsonl", [[20, 21]], tokens=16)
    with pytest.raises(InputError, match=f"blocks of 16 tokens cannot join blocks of {TOKENS}"):
        loaded(space, file)
    with open_workspace(space) as opened:
        assert opened.state.requests == 1


@pytest.mark.parametrize("job", range(5))
def test_a_load_that_is_broken_off_anywhere_keeps_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: int
) -> None:
    """Both tiers write a job a request, when the next one begins."""
    jobs = iter([None] * job)
    write = DiskStore.write

    def interrupted(*args: object, **kwargs: object) -> None:
        if next(jobs, "over") == "over":
            raise KeyboardInterrupt
        write(*args, **kwargs)  # type: ignore[arg-type]  # as they came

    make_workspace(tmp_path / "space", topology())
    file = trace(tmp_path / "t.jsonl", [FIRST, SECOND, [8, 9]])
    monkeypatch.setattr(DiskStore, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loaded(tmp_path / "space", file)
    monkeypatch.undo()
    with open_workspace(tmp_path / "space") as space:
        assert [tier.size() for tier in space.tiers] == [4 * ((job + 1) // 2), 4 * (job // 2)]
        over = min(job // 2 + 1, 3)
        assert space.state.requests == over
        labels = [label_of(key) for key in primary_lists(space.run().manager.primary).order]  # type: ignore[union-attr]
        assert labels == [["3", "2", "1", "0"], ["7", "6", "5", "4"], ["5", "4", "9", "8"]][over - 1]


@pytest.mark.parametrize("length", [0, 1, 64, 40_000])
def test_payloads_have_the_length_that_was_asked_for(tmp_path: Path, length: int) -> None:
    space = tmp_path / "space"
    make_workspace(space, topology())
    with (
        TraceSource(str(trace(tmp_path / "t.jsonl", [FIRST]))) as source,
        open_workspace(space, write=True) as opened,
    ):
        opened.run([source], payload_bytes=length).run()
    with open_workspace(space, write=True) as opened:
        store = opened.tiers[0].store
        assert {len(store.payload(key)) for key in store.index} == {length}  # type: ignore[attr-defined]


def test_or_the_real_one_where_the_size_of_a_token_is_known(tmp_path: Path) -> None:
    space = tmp_path / "space"
    make_workspace(space, topology(bytes_per_token=3))
    with (
        TraceSource(str(trace(tmp_path / "t.jsonl", [FIRST], tokens=16))) as source,
        open_workspace(space, write=True) as opened,
    ):
        opened.run([source], payload_bytes=None).run()
    with open_workspace(space, write=True) as opened:
        store = opened.tiers[0].store
        assert {len(store.payload(key)) for key in store.index} == {48}  # type: ignore[attr-defined]
    make_workspace(tmp_path / "unknown", topology())
    with (
        open_workspace(tmp_path / "unknown", write=True) as opened,
        pytest.raises(InputError, match="the real size of a block is not known"),
    ):
        opened.run(payload_bytes=None)


def test_faults_hold_for_those_who_open_it_later_until_they_are_taken_back(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    text = (space / "kvtier.toml").read_text()
    for offline in (True, False):
        with open_workspace(space, write=True) as opened:
            opened.set_faults("nvme", Faults(offline=offline))
            opened.set_faults("s3", Faults(offline=offline))
            opened.save()
        with open_workspace(space) as opened:
            expected = [Outcome.ABSENT.value if offline else Outcome.PROMOTED.value]
            assert outcomes(look_up(opened, "0")) == expected
    assert (space / "kvtier.toml").read_text() == text, "the file is the user's"


def test_loads_from_a_failing_tier_fail_and_it_keeps_its_blocks(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    with open_workspace(space, write=True) as opened:
        opened.set_faults("nvme", Faults(fail_rate=1.0, seed=7))
        opened.save()
    with open_workspace(space) as opened:
        assert outcomes(look_up(opened, "0", "1"))[0] in ("failed", "gave_up")
        assert [tier.size() for tier in opened.tiers] == [8, 8]


def test_a_tier_that_was_made_smaller_lets_its_oldest_blocks_go(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    (space / "kvtier.toml").write_text(topology_as_toml(topology(primary=2, nvme=3)))
    with open_workspace(space, write=True) as opened:
        assert [str(key).partition(":")[0] for key in opened.tiers[0].blocks()] == ["5", "6", "7"]
        assert opened.run().manager.primary.free == 0
    with open_workspace(space) as opened:
        assert [tier.size() for tier in opened.tiers] == [3, 8]


def test_a_tier_that_was_added_is_empty_and_one_that_is_gone_is_not_asked(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST, SECOND])
    made_for = topology()
    peer = replace(made_for.tiers[0], name="peer")
    (space / "kvtier.toml").write_text(topology_as_toml(replace(made_for, tiers=(peer, made_for.tiers[1]))))
    with open_workspace(space) as opened:
        assert [(tier.name, tier.size()) for tier in opened.tiers] == [("peer", 0), ("s3", 8)]
        assert outcomes(look_up(opened, "0")) == ["promoted"]


def test_a_tier_in_memory_ends_with_the_process(tmp_path: Path) -> None:
    made_for = topology()
    in_memory = replace(made_for, tiers=tuple(replace(tier, backend="memory") for tier in made_for.tiers))
    space = filled(tmp_path, [FIRST, SECOND], in_memory)
    assert not (space / "tiers").exists()
    with open_workspace(space) as opened:
        assert [tier.size() for tier in opened.tiers] == [0, 0]
        assert outcomes(look_up(opened, "4", "0")) == ["primary", "absent"]


def test_a_topology_that_is_wrong_is_told_with_its_file_and_nothing_stays_locked(tmp_path: Path) -> None:
    space = filled(tmp_path, [FIRST])
    (space / "kvtier.toml").write_text("version = 1\n[primary]\npolicy = 'fifo'\n")
    for _ in range(2):
        with pytest.raises(InputError, match="fifo") as raised:
            open_workspace(space, write=True, lock_timeout=0)
        assert raised.value.file == str(space / "kvtier.toml")


def test_a_damaged_block_is_one_failed_promotion_and_then_gone(tmp_path: Path) -> None:
    from tests.tiering.disk_tampering import execute

    space = filled(tmp_path, [FIRST, SECOND])
    for tier in ("nvme", "s3"):
        execute(space / "tiers" / tier, "UPDATE Cache SET value = zeroblob(84) WHERE key LIKE '1:%'")
    with open_workspace(space) as opened:
        story = look_up(opened, "0", "1", "2")
        assert outcomes(story) == ["promoted", "failed", "unreached"]
    with open_workspace(space, write=True) as opened:
        assert outcomes(look_up(opened, "0", "1", "2")) == ["promoted", "failed", "unreached"]
    with open_workspace(space) as opened:
        assert outcomes(look_up(opened, "0", "1", "2")) == ["primary", "absent", "unreached"]
        assert [tier.size() for tier in opened.tiers] == [7, 7]


def test_a_store_of_another_program_is_not_opened(tmp_path: Path) -> None:
    from tests.tiering.disk_tampering import execute

    space = filled(tmp_path, [FIRST])
    execute(space / "tiers" / "s3", "INSERT INTO Settings VALUES ('sqlite_foo', 'x')")
    for write in (True, False):
        with (
            open_workspace(space, write=write, lock_timeout=0) as opened,
            pytest.raises(EnvironmentFault, match="is damaged, or another program's"),
        ):
            opened.run()
