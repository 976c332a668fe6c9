"""Sessions whose rows hold only what is new in them, put together to whole prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.mooncake_delta import MooncakeDeltaReader
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]


def turn(length: int, output: int, ids: list[int], session: str | None = "s") -> dict[str, Any]:
    return {"session_id": session, "input_length": length, "output_length": output, "hash_ids": ids}


def prompts(source: TraceSource) -> list[tuple[int, list[int | str]]]:
    return [(request.input_length, request.hash_ids) for request in MooncakeDeltaReader(source, block_tokens=4)]


def test_a_prompt_is_the_last_one_what_was_generated_then_and_what_is_new(trace: MakeTrace) -> None:
    assert prompts(trace(turn(4, 2, [1]), turn(2, 1, [2]))) == [(4, [1]), (8, [1, "s+1.1"])]


def test_ids_hold_where_they_fall_on_the_borders_of_blocks(trace: MakeTrace) -> None:
    turns = [turn(8, 4, [1, 2]), turn(6, 2, [3, 4]), turn(4, 0, [5])]
    assert prompts(trace(*turns))[1:] == [
        (18, [1, 2, "s+1.2", 3, 4]),
        (24, [1, 2, "s+1.2", 3, "s+2.4", 5]),
    ]


def test_a_partly_filled_last_block_is_another_once_it_is_filled(trace: MakeTrace) -> None:
    assert prompts(trace(turn(6, 0, [1, 2]), turn(2, 0, [3])))[1] == (8, [1, "s+1.1"])


def test_sessions_do_not_mix_and_rows_without_one_stand_alone(trace: MakeTrace) -> None:
    rows = [turn(4, 4, [1]), turn(4, 4, [1], "t"), turn(4, 0, [2]), turn(4, 4, [9], None), turn(4, 4, [9], None)]
    assert prompts(trace(*rows)) == [(4, [1]), (4, [1]), (12, [1, "s+1.1", 2]), (4, [9]), (4, [9])]


def test_it_begins_anew_each_time(trace: MakeTrace) -> None:
    reader = MooncakeDeltaReader(trace(turn(4, 4, [1]), turn(4, 4, [2])), block_tokens=4)
    assert list(reader) == list(reader)


@pytest.mark.parametrize("turns", [(turn(4, 2**52, [1]), turn(4, 0, [2])), (turn(2**53, 0, [1]), turn(2**53, 0, [2]))])
def test_a_prompt_beyond_belief_is_refused(turns: tuple[dict[str, Any], ...], trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=r"the session's prompt has [0-9,]+ blocks by now"):
        prompts(trace(*turns))
