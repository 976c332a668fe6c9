"""A block of a trace is its chain: the ids from the start of the prompt to it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.identity import ROOT, BlockTable, Label

LABELS = st.one_of(
    st.integers(-4, 4),
    st.sampled_from((-1, 2**53 + 1, 2**64 - 1, 2**64, 10**4000)),
    st.sampled_from(("", "a", "/a", "é", "\ud800", "05", "-0", "1.0")),
)
PROMPTS = st.lists(st.lists(LABELS, max_size=6), max_size=8)


def table_of(prompts: Iterable[Sequence[Label]], *, by_id: bool = False) -> BlockTable:
    table = BlockTable(by_id=by_id)
    for prompt in prompts:
        table.keys(prompt)
    return table


def chain(table: BlockTable, key: int) -> tuple[Label, ...]:
    """The labels from the start of the prompt to a block."""
    labels: list[Label] = []
    while key != ROOT:
        labels.append(table.labels[key])
        key = table.parents[key]
    return tuple(reversed(labels))


def digests(table: BlockTable) -> dict[tuple[Label, ...], bytes]:
    return {chain(table, key): table.digest(key) for key in range(len(table))}


def test_a_prompt_that_comes_again_is_the_same_blocks() -> None:
    table = BlockTable()
    assert table.keys([7, "x", 9]) == [0, 1, 2]
    assert table.keys([7, "x", 9, 10]) == [0, 1, 2, 3]
    assert table.keys([7, "x"]) == [0, 1]
    assert len(table) == 4


def test_the_same_id_behind_another_prefix_is_another_block() -> None:
    table = table_of([[1, 2, 3]])
    assert table.keys([9, 2, 3]) == [3, 4, 5]
    assert table.keys([1, 3]) == [0, 6]
    assert table.keys([9, 2, 3, 2]) == [3, 4, 5, 7]
    assert table.keys([1, 2, 3]) == [0, 1, 2]


def test_ids_taken_as_they_are_are_the_same_block_behind_any_prefix() -> None:
    table = table_of([[1, 2, 3]], by_id=True)
    assert table.keys([9, 2, 3]) == [3, 1, 2]
    assert table.keys([3, 3, 4, 4]) == [2, 2, 4, 4]


def test_a_repeated_id_in_a_prompt_is_another_block_each_time() -> None:
    table = BlockTable()
    assert table.keys([7, 7, 7]) == [0, 1, 2]
    assert table.keys([7, 7]) == [0, 1]
    assert table.keys([7, 8, 7]) == [0, 3, 4]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 3)), max_size=8),
    st.lists(st.lists(LABELS, max_size=6), max_size=3),
)
def test_ids_counted_in_order_of_first_sight_are_blocks_like_any_others(
    grown: list[tuple[int, int, int]], others: list[list[Label]]
) -> None:
    counted, named = BlockTable(), table_of([["a name"]])
    prompts: list[list[Label]] = [[]]
    unseen = 0
    for place, kept, new in grown:
        prompts.append([*prompts[place % len(prompts)][:kept], *range(unseen, unseen + new)])
        unseen += new
    for prompt in prompts + others:
        assert counted.keys(prompt) == [key - 1 for key in named.keys(prompt)]
        for label in prompt:
            assert counted.named(label) == [key - 1 for key in named.named(label)]
    assert [counted.name(key) for key in range(len(counted))] == [named.name(key) for key in range(1, len(named))]
    assert list(counted.labels) == named.labels[1:]


def test_a_block_of_a_trace_that_counts_its_ids_takes_little_memory() -> None:
    table = table_of([range(100_000)])
    table.keys([*range(50_000), 100_000])
    assert sum(map(sys.getsizeof, vars(table).values())) < 1_000_000


def test_an_empty_prompt_has_no_blocks() -> None:
    assert BlockTable().keys([]) == []


def test_the_second_block_of_a_label_is_called_so() -> None:
    table = table_of([[1, 2], [9, 2], [1, 2, 2]])
    assert [table.name(key) for key in table.named(2)] == ["2", "2~2", "2~3"]
    assert table.name(table.named(9)[0]) == "9"
    assert table.named(5) == []


@given(PROMPTS, st.booleans())
def test_every_block_has_a_name_of_its_own(prompts: list[list[Label]], by_id: bool) -> None:
    table = table_of(prompts, by_id=by_id)
    names = [table.name(key) for key in range(len(table))]
    assert len(set(names)) == len(table)
    assert {key for label in table.labels for key in table.named(label)} == set(range(len(table)))


@given(PROMPTS, st.booleans())
def test_whole_runs_of_blocks_are_found_as_one_by_one(prompts: list[list[Label]], by_id: bool) -> None:
    quick, slow = BlockTable(by_id=by_id), BlockTable(by_id=by_id)
    for prompt in prompts:
        slow._counted = False
        assert quick.keys(prompt) == slow._keys_one_by_one(prompt)
    assert (list(quick.labels), quick.parents) == (list(slow.labels), slow.parents)


@given(PROMPTS)
def test_blocks_are_the_same_exactly_where_their_chains_are(prompts: list[list[Label]]) -> None:
    table = table_of(prompts)
    chains = {tuple(prompt[: end + 1]) for prompt in prompts for end in range(len(prompt))}
    assert sorted(map(str, chains)) == sorted(str(chain(table, key)) for key in range(len(table)))


@given(PROMPTS, st.randoms(use_true_random=False))
def test_a_digest_depends_on_the_chain_alone(prompts: list[list[Label]], random: object) -> None:
    shuffled = list(prompts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = digests(table_of(prompts))
    assert found == digests(table_of(shuffled))
    assert len(set(found.values())) == len(found)
    assert {len(digest) for digest in found.values()} <= {32}


def test_a_digest_is_the_same_in_every_run() -> None:
    table = table_of([[5, "x"]])
    first = sha256(bytes(32) + b"5").digest()
    assert [table.digest(0), table.digest(1)] == [first, sha256(first + b"x").digest()]


def test_a_number_and_its_text_are_digested_alike() -> None:
    numbers, texts = table_of([[1, 2]]), table_of([["1", "2"]])
    assert [numbers.digest(key) for key in (0, 1)] == [texts.digest(key) for key in (0, 1)]


def test_with_ids_as_they_are_a_digest_knows_no_prefix() -> None:
    one, other = table_of([[1, 2]], by_id=True), table_of([[9, 2]], by_id=True)
    assert one.digest(1) == other.digest(1) == sha256(bytes(32) + b"2").digest()
    assert one.digest(0) != other.digest(0)


@pytest.mark.parametrize("by_id", [False, True])
def test_ids_of_any_size_stay_apart(by_id: bool) -> None:
    ids = [0, 2**64, 2**128, -1, 2**64 - 1, -(2**63), 10**4000, 2**53, 2**53 + 1]
    table = table_of([[each] for each in ids], by_id=by_id)
    assert table.labels == ids
    assert len({table.digest(key) for key in range(len(ids))}) == len(ids)


def test_a_chain_may_be_longer_than_python_can_recurse() -> None:
    table = table_of([range(5_000)])
    assert table.digest(4_999) != table.digest(4_998)
