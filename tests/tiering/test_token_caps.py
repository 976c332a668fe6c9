"""A request's caps on what it loads and stores are read and counted in blocks as vLLM's scheduler does."""

from __future__ import annotations

from typing import Any

import pytest

from kvtier_cli.tiering.token_caps import TokenCaps, parse_token_caps


def test_a_cap_is_a_whole_number_from_0_on() -> None:
    given = {"max_load_tokens": 4096, "max_offload_tokens": 0, "kv_load_tiers": []}
    assert parse_token_caps(given) == (TokenCaps(4096, 0), ())
    assert parse_token_caps({"max_load_tokens": 10**30}) == (TokenCaps(10**30, None), ())


@pytest.mark.parametrize("given", [{}, {"max_load_tokens": None, "max_offload_tokens": None}, {"max_tokens": 5}])
def test_no_cap_and_null_say_nothing(given: dict[str, Any]) -> None:
    assert parse_token_caps(given) == (None, ())


@pytest.mark.parametrize("value", [True, False, -1, 0.0, 512.0, "512", [512], {}])
def test_what_is_no_cap_gets_one_warning_and_caps_nothing(value: object) -> None:
    assert parse_token_caps({"max_load_tokens": value}) == (None, ("max_load_tokens",))
    both = parse_token_caps({"max_load_tokens": 7, "max_offload_tokens": value})
    assert both == (TokenCaps(7, None), ("max_offload_tokens",))


@pytest.mark.parametrize(
    ("cap", "blocks"),
    [(None, 4), (0, 0), (15, 0), (16, 1), (31, 1), (32, 2), (63, 3), (64, 4), (65, 4), (10**30, 4)],
)
def test_a_cap_leaves_whole_blocks(cap: int | None, blocks: int) -> None:
    assert TokenCaps(cap, 16).limits(4, 16)[:2] == (blocks, 1)
    assert TokenCaps(16, cap).limits(4, 16)[:2] == (1, blocks)


@pytest.mark.parametrize(
    ("cap", "prompt", "blocks"),
    [
        pytest.param(50, 50, 4, id="a cap as long as the prompt caps nothing"),
        pytest.param(49, 50, 3, id="a shorter one leaves the partly filled block out"),
        pytest.param(20, 20, 1, id="a prompt shorter than its blocks says nothing of the last one"),
        pytest.param(63, 200, 3, id="nor does a longer one"),
    ],
)
def test_a_partly_filled_last_block_ends_where_the_prompt_does(cap: int, prompt: int, blocks: int) -> None:
    assert TokenCaps(cap).limits(4, 16, prompt).load == blocks
