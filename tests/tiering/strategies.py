"""Hypothesis strategies for tiers, filters and blocks: small numbers, so that everything meets everything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import TierSpec

BLOCKS = tuple(f"b{index}" for index in range(8))
TWO_GROUPS = (*BLOCKS[:5], *(f"{block}@1" for block in BLOCKS[:5]))
"""Blocks of one KV group; of two, the first five of them in each."""

_NAMES = st.sampled_from((*BLOCKS, *TWO_GROUPS[5:]))
_FAULTS = st.sampled_from((0, 0, 0, 1, 3)).flatmap(lambda most: st.frozensets(_NAMES, max_size=most))


def block_lists(*, min_size: int = 0, max_size: int = 8, unique: bool = False) -> st.SearchStrategy[list[int]]:
    """Blocks by number, to be taken modulo what there is; as prompts are, mostly neighbours in rising order."""
    run = st.builds(lambda first, count: list(range(first, first + count)), st.integers(0, 5), st.integers(1, 5))
    drawn = st.lists(st.integers(0, 9), min_size=min_size, max_size=max_size, unique=unique)
    return run | run | drawn


def tier_specs(name: str) -> st.SearchStrategy[TierSpec]:
    """A secondary tier of any kind, with capacities and latencies that a short scenario notices."""
    return st.builds(
        TierSpec,
        st.just(name),
        medium=st.sampled_from((None, *Medium)),
        locality=st.sampled_from((None, *Locality)),
        capacity=st.sampled_from((None, None, None, 5, 3, 2, 1, 0)),
        load_latency=st.sampled_from((0, 0, 1, 2, 3)),
        store_latency=st.sampled_from((0, 0, 0, 1, 2, 3)),
        lookup_retry=st.sampled_from((0, 0, 0, 0, 0, 0, 1, 2)),
        request_level=st.booleans(),
        fail_loads=_FAULTS,
        fail_stores=_FAULTS,
        offline=st.sampled_from((False,) * 7 + (True,)),
    )


def tier_lists() -> st.SearchStrategy[tuple[TierSpec, ...]]:
    """None to three secondary tiers."""
    return st.integers(0, 3).flatmap(lambda count: st.tuples(*(tier_specs(f"t{index}") for index in range(count))))


def load_tiers() -> st.SearchStrategy[dict[str, Any]]:
    """What a request says of its filter: mostly nothing, or one that admits some of the tiers."""
    filters: tuple[Any, ...] = (
        None,
        [],
        [{"medium": "storage"}],
        [{"medium": "cpu"}],
        [{"locality": "local"}],
        [{"medium": "storage", "locality": "remote"}, {"medium": "cpu", "locality": "local"}],
        [{"medium": "disk"}],
    )
    return st.just({}) | st.sampled_from(filters).map(lambda value: {"kv_load_tiers": value})
