"""Keys of blocks that outlive the process: the same in every run, told apart by their prefix, with a label to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.text_keys import TextKeys, digest_of, key_behind, label_of
from kvtier_cli.tiering.model import group_of

LABELS = st.one_of(st.integers(-(2**70), 2**70), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))


def keys_of(*prompts: list[int | str], by_id: bool = False) -> list[list[str]]:
    table = BlockTable(by_id=by_id)
    text_keys = TextKeys(table)
    return [text_keys.keys(table.keys(prompt)) for prompt in prompts]


def test_the_same_id_behind_another_prefix_has_another_key() -> None:
    [[_, one], [_, other]] = keys_of([1, 7], [2, 7])
    assert one != other
    assert label_of(one) == label_of(other) == "7"


def test_ids_taken_as_they_are_have_one_key_wherever_they_stand() -> None:
    [[_, one], [_, other]] = keys_of([1, 7], [2, 7], by_id=True)
    assert one == other


@given(st.lists(LABELS, min_size=1, max_size=5), st.lists(st.lists(LABELS, max_size=5), max_size=3), st.booleans())
def test_a_key_depends_on_its_prefix_alone_and_can_be_told_from_the_block_before_it(
    prompt: list[int | str], others: list[list[int | str]], by_id: bool
) -> None:
    keys = keys_of(*others, prompt, by_id=by_id)[-1]
    assert keys == keys_of(prompt, by_id=by_id)[0]
    assert [label_of(key) for key in keys] == list(map(str, prompt))
    before: str | None = None
    for key, label in zip(keys, prompt, strict=True):
        assert key == key_behind(before, label, by_id=by_id)
        before = key


@given(st.lists(LABELS, min_size=1, max_size=5))
def test_the_digest_in_a_key_is_the_one_that_events_carry(prompt: list[int | str]) -> None:
    table = BlockTable()
    numbers = table.keys(prompt)
    assert list(map(digest_of, TextKeys(table).keys(numbers))) == list(map(table.digest, numbers))


@pytest.mark.parametrize("label", ["a@1", "x:y", "7~2", "\n", "%"])
def test_what_a_label_says_is_no_part_of_the_key(label: str) -> None:
    [[key]] = keys_of([label])
    assert (label_of(key), group_of(key)) == (label, 0)
