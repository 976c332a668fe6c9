"""`kvtier demo`: a two-minute tour on shipped data. Every part is what the command line above it prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvtier_cli.commands.inputs import given_filter, given_topology
from kvtier_cli.commands.lookup import look_up
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.errors import ExitStatus
from kvtier_cli.shipped import shipped_fixture

if TYPE_CHECKING:
    from kvtier_cli.render.console import Output

EXAMPLES = ("kvtier demo", "kvtier demo --ascii")
WITHOUT = ("json", "quiet", "verbose", "no_progress")

REQUEST = "284"
FILTER = '[{"medium":"storage","locality":"local"}]'
TYPO = '[{"medum":"storage"}]'


def command(ctx: typer.Context) -> int:
    """A tour of what kvtier answers, on a shipped chat trace and small tiers.

    A lookup, a filter and a replay, each below the command line that prints it. Needs no GPU and no server.
    """
    options = shared(ctx)
    for line in tour(options, options.stdout()):
        print(line, flush=True)
    return ExitStatus.DONE


def tour(options: Shared, out: Output) -> Iterator[str]:
    """The text of the tour, line by line, as its parts are computed."""
    chat, topology = _place("chat.jsonl"), _place("demo.toml")
    yield from _title(out, "1. Why was only a part of this prompt served?")
    yield _typed(out, "lookup", "--trace", chat, "--request", REQUEST, "--tiers", FILTER, "--topology", topology)
    yield ""
    yield from _lookup(options, out, chat, topology)
    yield ""
    yield from _title(out, "2. What does vLLM make of a filter with a typo? It admits everything, without a word.")
    yield _typed(out, "filter", TYPO, "--topology", topology)
    yield ""
    yield from _filter(out, topology)
    yield ""
    yield from _title(out, "3. What did the first filter do to all requests of the trace?")
    yield _typed(out, "replay", chat, "--tiers", FILTER, "--topology", topology)
    yield ""
    yield from _replay(out, chat, topology)
    yield ""
    yield from _title(out, "Try next")
    for number, (words, line) in enumerate(_things_to_try(chat, topology)):
        if number:
            yield ""
        yield from _title(out, words, style="muted")
        yield _typed(out, *line)


def _things_to_try(chat: str, topology: str) -> Iterator[tuple[str, list[str]]]:
    lookup = ["lookup", "--trace", chat, "--request", REQUEST, "--tiers", "storage", "--topology", topology]
    yield "The same request with S3 admitted:", lookup
    agent = ["lookup", "--trace", _place("agent.jsonl"), "--request", "t30.21", "--topology", topology]
    yield "A prompt that is larger than the CPU tier, and so waits for ever:", agent
    yield "The typo caught before it ships (exit status 1 in CI):", ["filter", TYPO, "--strict"]


def _lookup(options: Shared, out: Output, chat: str, topology: str) -> Iterator[str]:
    from kvtier_cli.render.story_view import story_lines

    tiers = given_topology(topology)
    found = look_up(chat, REQUEST, (), tiers, given_filter(FILTER, tiers).parse, options)
    assert found.story is not None  # noqa: S101 - a request has no ambiguous blocks
    yield from story_lines(found.story, out, scope=False)


def _filter(out: Output, topology: str) -> Iterator[str]:
    from kvtier_cli.render.filter_view import filter_lines

    tiers = given_topology(topology)
    given = given_filter(TYPO, tiers)
    yield from filter_lines(given.parse, tiers, given.form, out)


def _replay(out: Output, chat: str, topology: str) -> Iterator[str]:
    from kvtier_cli.render.replay_view import replay_lines
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.traces.source import TraceSource

    tiers = given_topology(topology)
    parse = given_filter(FILTER, tiers).parse
    with TraceSource(chat) as source:
        run = TraceRun([source], tiers, parse.filter)
        yield from replay_lines([source.name], run.run(), tiers, parse, run.loop.block_tokens, out)


def _place(name: str) -> str:
    """Where a shipped file is, from here if it lies below."""
    path = shipped_fixture(name)
    here = Path.cwd().resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _title(out: Output, text: str, *, style: str = "bold") -> Iterator[str]:
    from kvtier_cli.render.noted_table import wrapped

    yield from wrapped(text, out, style=style)


def _typed(out: Output, *args: str) -> str:
    """A command line as one types it, broken before its options where it would be wider than `out`."""
    from kvtier_cli.render.console import cell_width, plain

    parts: list[str] = []
    for arg in args:
        word = plain(shlex.quote(arg))
        if parts and parts[-1].startswith("--") and " " not in parts[-1] and not arg.startswith("--"):
            parts[-1] += f" {word}"  # an option's value stays with it
        else:
            parts.append(word)
    lines = ["$ kvtier"]
    for part in parts:
        if cell_width(f"{lines[-1]} {part}") > out.width - 2:
            lines.append(f"     {part}")
        else:
            lines[-1] += f" {part}"
    return out.style(" \\\n".join(lines), "note")
