"""The blocks of one request of a trace, before it is replayed, and which of them a text means."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier_cli.errors import InputError
from kvtier_cli.replay.identity import Label
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.block_names import CHAIN_MARK
from kvtier_cli.wording import nearest, shown


@dataclass(frozen=True, slots=True)
class Prompt:
    """The blocks of one request: `keys` as every run over the same trace numbers them, their labels and names."""

    keys: tuple[int, ...]
    labels: tuple[Label, ...]
    names: tuple[str, ...]


def read_prompt(run: TraceRun, index: int) -> Prompt:
    """The blocks of request `index`. `run` is only read with, not run."""
    loop = run.loop
    for request in run.requests():
        keys = loop.numbers(request)
        if request.index == index:
            labels = [loop.table.labels[key] for key in keys]
            return Prompt(tuple(keys), tuple(labels), tuple(map(loop.table.name, keys)))
    raise LookupError(index)


def find_block(prompt: Prompt, text: str, request: str, file: str) -> int:
    """Where in the prompt the block is that `text` means: by its name (`242`, `7~2`), else its id, else its place,
    from 0. Raises InputError where there is none, or several have the label."""
    name = text.removesuffix(f"{CHAIN_MARK}1")  # the first block with an id goes by that alone
    if name in prompt.names:
        return prompt.names.index(name)
    labelled = [index for index, label in enumerate(prompt.labels) if str(label) == text]
    if len({prompt.keys[index] for index in labelled}) > 1:
        some = ", ".join(prompt.names[index] for index in labelled[:3]) + (", ..." if len(labelled) > 3 else "")
        raise InputError(
            f"{len(labelled):,} blocks of {request} have the id {shown(text)}",
            file=file,
            hint=f"Give one's name: {some}.",
        )
    if labelled:
        return labelled[0]
    total = len(prompt.keys)
    if text.isascii() and text.isdigit() and len(text) < 19 and int(text) < total:
        return int(text)
    near = nearest(text, prompt.names)
    has = f"Its blocks count from 0 to {total - 1:,}, or go by their ids." if total else "It has no blocks."
    raise InputError(
        f"{request} has no block {shown(text)}", file=file, hint=has + (f' Did you mean "{near}"?' if near else "")
    )
