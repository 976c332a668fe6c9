"""Made traces: the same bytes everywhere, ids that agree with their chains, and what makes them like real ones."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from itertools import islice, pairwise

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.synth import SynthSpec, requests
from kvtier_cli.traces.synth_draws import Draws, Popularity
from kvtier_cli.traces.synth_kinds import KIND_NAMES, MAX_PROMPT_TOKENS
from kvtier_cli.traces.writers import find_writer

MANY = 3_000


def made(spec: SynthSpec, count: int = MANY) -> list[Request]:
    return list(requests(spec, limit=count))


def digest(spec: SynthSpec) -> str:
    file = io.BytesIO()
    tags = () if spec.tenants is None else ("tenant",)
    writer = find_writer("mooncake", "").writer_class()(file, spec.block_tokens, tag_names=tags)
    for request in requests(spec, limit=1_000):
        writer.write(request)
    return hashlib.sha256(file.getvalue()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (SynthSpec("chat"), "f93464efd3113305"),
        (SynthSpec("agent"), "6a033dc4be8e1923"),
        (SynthSpec("rag"), "d062b614d8e75f26"),
        (SynthSpec("mixed"), "0b6e25c361596056"),
        (
            SynthSpec("mixed", seed=2**70, block_tokens=16, tenants=50, between_ms=40, arrivals="poisson"),
            "4f978dc93d7dd5e1",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, SynthSpec) else "",
)
def test_a_seed_makes_the_same_bytes_on_every_machine_and_python(spec: SynthSpec, expected: str) -> None:
    assert digest(spec) == expected


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("block_tokens", [16, 512])
def test_an_id_has_one_place_so_that_ids_and_chains_agree(kind: str, block_tokens: int) -> None:
    behind: dict[int | str, int | str] = {}
    for request in made(SynthSpec(kind, block_tokens=block_tokens, tenants=3), 1_000):
        before: int | str = -1
        for block in request.hash_ids:
            assert behind.setdefault(block, before) == before
            before = block


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_ids_are_counted_up_in_order_of_first_sight(kind: str) -> None:
    seen = 0
    for request in made(SynthSpec(kind)):
        for block in request.hash_ids:
            assert block <= seen  # type: ignore[operator]
            seen += block == seen
        assert request.hash_ids[-1] == seen - 1, "what a request asks is its own"


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_requests_arrive_in_order_and_list_the_blocks_that_their_length_fills(kind: str) -> None:
    time: int | float = 0
    for index, request in enumerate(made(SynthSpec(kind, block_tokens=64))):
        assert request.index == index
        assert len(request.hash_ids) == -(-request.input_length // 64)
        assert request.timestamp is not None
        assert request.timestamp >= time
        time = request.timestamp
    assert time > 0


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_sessions_prompts_grow_by_the_answer_and_keep_their_whole_blocks(kind: str) -> None:
    last: dict[str, Request] = {}
    follow_ups = 0
    for request in made(SynthSpec(kind, block_tokens=64)):
        assert request.session_id is not None
        before = last.get(request.session_id)
        if before is not None:
            follow_ups += 1
            whole = before.input_length // 64
            assert request.hash_ids[:whole] == before.hash_ids[:whole]
            assert request.input_length > before.input_length + (before.output_length or 0)
            assert request.input_length <= MAX_PROMPT_TOKENS
        last[request.session_id] = request
    assert follow_ups > MANY // 10


def test_sessions_start_with_system_prompts_that_others_have_too() -> None:
    first = Counter(request.hash_ids[0] for request in made(SynthSpec("agent")))
    assert len(first) == 4
    (_, most), *_, (_, least) = first.most_common()
    assert most > 2 * least


def test_few_documents_of_a_rag_trace_are_asked_about_again_and_again() -> None:
    spec = SynthSpec("rag", block_tokens=64)
    shared = Counter(
        block for request in made(spec) if (request.request_id or "").endswith(".0") for block in request.hash_ids
    )
    systems = {request.hash_ids[0] for request in made(spec)}
    used = sorted((count for block, count in shared.items() if count > 1), reverse=True)
    assert len(used) > 50 * len(systems)
    assert used[0] > 100 * used[-1]


def test_an_agents_helpers_start_from_its_prompt_and_are_done_before_it_goes_on() -> None:
    by_session: dict[str, list[Request]] = {}
    for request in made(SynthSpec("agent", block_tokens=64), 20_000):
        by_session.setdefault(request.session_id or "", []).append(request)
    sent = 0
    for name, calls in by_session.items():
        sender, dash, place = name.partition("-")
        if not dash:
            continue
        sent += 1
        call = by_session[sender][int(place[:-1]) - 1]
        whole = call.input_length // 64
        assert calls[0].hash_ids[:whole] == call.hash_ids[:whole]
        if len(by_session[sender]) > call_number(call) + 1:
            following = by_session[sender][call_number(call) + 1]
            assert (following.timestamp or 0) > (calls[-1].timestamp or 0)
    assert sent > 50


def call_number(request: Request) -> int:
    return int((request.request_id or "").rpartition(".")[2])


def test_tenants_share_nothing_and_are_named() -> None:
    owner: dict[int | str, str | None] = {}
    seen = Counter[str | None]()
    for request in made(SynthSpec(tenants=5, block_tokens=64)):
        assert request.tags is not None
        (tenant,) = request.tags
        seen[tenant] += 1
        for block in request.hash_ids:
            assert owner.setdefault(block, tenant) == tenant
    assert [name for name, _ in seen.most_common()] == ["t0", "t1", "t2", "t3", "t4"]
    assert made(SynthSpec(), 1)[0].tags is None


@pytest.mark.parametrize("arrivals", ["bursts", "poisson"])
def test_sessions_are_as_far_apart_as_was_asked_on_average(arrivals: str) -> None:
    spec = SynthSpec("rag", between_ms=2_000, arrivals=arrivals)
    starts = [request.timestamp or 0 for request in requests(spec, limit=20_000) if call_number(request) == 0]
    assert (starts[-1] - starts[0]) / (len(starts) - 1) == pytest.approx(2_000, rel=0.05)
    gaps = [after - before for before, after in pairwise(starts)]
    close = sum(gap < 200 for gap in gaps) / len(gaps)
    assert close > 0.3 if arrivals == "bursts" else close == pytest.approx(0.095, abs=0.02)


def test_a_longer_trace_begins_as_a_shorter_one_and_ends_where_its_references_are_reached() -> None:
    spec = SynthSpec("chat")
    by_references = list(requests(spec, references=5_000))
    blocks = [len(request.hash_ids) for request in by_references]
    assert sum(blocks[:-1]) < 5_000 <= sum(blocks)
    assert by_references == made(spec, len(by_references))
    assert by_references == list(islice(requests(spec), len(by_references)))


def test_most_blocks_of_the_default_trace_are_distinct() -> None:
    """At ten million references 61 % are; `make soak` looks at all of them."""
    blocks = newest = 0
    for request in requests(SynthSpec(), references=300_000):
        blocks += len(request.hash_ids)
        newest = max(newest, request.hash_ids[-1])  # type: ignore[type-var]
    assert (newest + 1) / blocks > 0.6


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "agnt"}, 'there is no kind "agnt"'),
        ({"arrivals": "often"}, 'there are no arrivals "often"'),
        ({"seed": -1}, "the seed is -1; expected 0 or more"),
        ({"block_tokens": 0}, "blocks of 0 tokens; expected 1 or more"),
        ({"tenants": 0}, "0 tenants; expected 1 to 100,000"),
        ({"between_ms": 0}, "expected 1 millisecond to 100 hours between two sessions"),
    ],
)
def test_what_cannot_be_made_is_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as fault:
        SynthSpec(**values)  # type: ignore[arg-type]
    assert fault.value.message == words


def test_by_zipfs_law_the_second_comes_half_as_often_as_the_first() -> None:
    draws, ranks = Draws(7), Popularity(100)
    drawn = Counter(ranks.draw(draws) for _ in range(40_000))
    assert set(drawn) <= set(range(100))
    assert drawn[0] / drawn[1] == pytest.approx(2, rel=0.1)
    assert drawn[0] / drawn[4] == pytest.approx(5, rel=0.1)


def test_waits_are_exponential_and_sizes_lie_between_their_quantiles() -> None:
    draws = Draws(7)
    waits = sorted(draws.wait(1_000) for _ in range(40_000))
    assert sum(waits) / len(waits) == pytest.approx(1_000, rel=0.02)
    assert waits[20_000] == pytest.approx(693, rel=0.03)  # ln 2
    assert waits[36_000] == pytest.approx(2_303, rel=0.03)  # ln 10
    sizes = sorted(draws.size((10, 20, 90)) for _ in range(10_000))
    assert (sizes[0], sizes[-1]) == (10, 89)
    assert sizes[5_000] == pytest.approx(20, abs=1)
