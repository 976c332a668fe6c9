"""The blocks of a workspace: listed, named, and found by what people call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.text_keys import hex_of, key_behind, label_of
from kvtier_cli.workspace import Workspace, open_workspace
from kvtier_cli.workspace.stored_blocks import StoredBlocks
from tests.workspace.spaces import filled, topology

PROMPTS = [[1, 2, 3], [10, 2, 3], [9]]
"""Blocks 2 and 3 stand for two blocks each."""


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return open_workspace(filled(tmp_path, PROMPTS, topology(primary=3, nvme=5)))


def test_each_block_is_listed_once_with_the_tiers_that_have_it(space: Workspace) -> None:
    found = StoredBlocks(space).listed()
    assert [label_of(block.key) for block in found] == ["1", "2", "2", "3", "3", "9", "10"], "numbers by their size"
    assert {label_of(block.key): block.tiers for block in found if label_of(block.key) in "9 10 1"} == {
        "1": ("s3",),
        "9": ("cpu", "nvme", "s3"),
        "10": ("cpu", "nvme", "s3"),
    }


@pytest.mark.parametrize(
    ("tier", "sort", "labels"),
    [
        ("nvme", "oldest", ["3", "10", "2", "3", "9"]),
        ("nvme", "recent", ["9", "3", "2", "10", "3"]),
        ("cpu", "recent", ["9", "10", "2"]),
        ("primary", "block", ["2", "9", "10"]),
    ],
)
def test_a_tier_s_blocks_come_in_the_order_of_use(space: Workspace, tier: str, sort: str, labels: list[str]) -> None:
    assert [label_of(block.key) for block in StoredBlocks(space).listed(tier=tier, sort=sort)] == labels


def test_an_unknown_tier_is_told_the_nearest(space: Workspace) -> None:
    with pytest.raises(InputError, match='no tier "nvm"') as raised:
        StoredBlocks(space).listed(tier="nvm")
    assert raised.value.hint == 'did you mean "nvme"?'


def test_a_label_that_stands_for_several_blocks_goes_with_the_beginning_of_their_digests(space: Workspace) -> None:
    blocks = StoredBlocks(space)
    [one, two] = blocks.listed(block="2")
    names = [blocks.name(block.key) for block in (one, two)]
    assert names == [f"2~{hex_of(block.key)[:8]}" for block in (one, two)]
    assert [[found.key for found in blocks.listed(block=name)] for name in names] == [[one.key], [two.key]]
    assert [blocks.listed(block=block.key)[0] for block in (one, two)] == [one, two]
    assert [blocks.name(block.key) for block in blocks.listed(block="9")] == ["9"]
    assert blocks.listed(block="4") == blocks.listed(block="2~") == blocks.listed(block="") == []


def chain(*labels: int) -> list[str]:
    keys: list[str] = []
    for label in labels:
        keys.append(key_behind(keys[-1] if keys else None, label))
    return keys


def test_texts_are_read_as_a_prompt(space: Workspace) -> None:
    blocks = StoredBlocks(space)
    for prompt in PROMPTS:
        assert blocks.resolve([str(label) for label in prompt]) == (chain(*prompt), [], {})


def test_a_prompt_may_begin_in_the_middle_when_that_is_clear(space: Workspace) -> None:
    blocks = StoredBlocks(space)
    [_, two, three] = chain(10, 2, 3)
    name = blocks.name(two)
    assert blocks.resolve([name, "3"]) == ([two, three], [], {})
    found = blocks.resolve(["2", "3"])
    assert set(found.ambiguous) == {"2"}
    assert {block.key for block in found.ambiguous["2"]} == {two, chain(1, 2)[1]}
    assert found.keys[1] == key_behind(found.keys[0], 3), "the block behind the one that was chosen"


def test_what_nobody_stored_has_the_key_that_it_would_have(space: Workspace) -> None:
    assert StoredBlocks(space).resolve(["1", "77", "78"]) == (chain(1, 77, 78), ["77", "78"], {})


def test_ids_taken_as_they_are_mean_one_block_each(tmp_path: Path) -> None:
    with open_workspace(filled(tmp_path, PROMPTS, topology(identity="id"))) as space:
        found = StoredBlocks(space).resolve(["3", "2", "77"])
        assert (found.keys, found.unknown, found.ambiguous) == (
            [key_behind(None, label) for label in (3, 2, 77)],
            ["77"],
            {},
        )
