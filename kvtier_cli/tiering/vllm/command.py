"""A `vllm serve …` command line as text: its words, and the options among them. Nothing is expanded or executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.json_text import decode_json
from kvtier_cli.tiering.vllm.reading import Locate, Reading, Step, warn_of_repeated_keys
from kvtier_cli.tiering.vllm.serve import KNOWN_KV_OPTIONS, READ, ServeOptions
from kvtier_cli.wording import did_you_mean, shown

_COMMAND = re.compile(r"(?:^|[\s/'\"])vllm\s+serve(?=\s|$)|(?:^|\s)--kv[-_](?:transfer[-_]config|offloading[-_]size)\b")
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_INNER_HASH = re.compile(r"(?<=\S)#")
_PLACEHOLDER: Final = "\ue023"
_OPERATORS: Final = frozenset({";", "&", "&&", "|", "||", ";;"})
_SHORT: Final = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-sc": "speculative-config",
}
_TRANSFER: Final = "kv-transfer-config"
_SUFFIXES: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")


def looks_like_command(text: str) -> bool:
    """Whether `text` is a command line for vLLM rather than a file's name or a file of another kind."""
    return _COMMAND.search(text) is not None and text.lstrip()[:1] not in ("{", "[")


def options_from_command(text: str, reading: Reading) -> ServeOptions:
    """The options of the one command in `text`, as vLLM's argument parser reads them.

    Dashes and underscores are alike, `--a=b` and `--a b` too; of an option given twice the last holds, and options
    written with dots replace a JSON text of the same name. Raises InputError with the place in `text`.
    """
    words = _the_command(_words(text, reading), reading)
    options, transfer, dotted = ServeOptions(), None, _Dotted(reading)
    for at in _serves(words):
        if not (following := "".join(words[at + 1 : at + 2])).startswith("-"):
            options.model = following or None
    options.simple_offloading = any(re.fullmatch(r"VLLM_USE_SIMPLE_KV_OFFLOAD=0*[1-9]\d*", word) for word in words)
    index = 0
    while index < len(words):
        name, value, used = _option(words, index)
        index += used
        if name is None:
            continue
        key, dot, inner = name.partition(".")
        if key.startswith("kv-") and key not in KNOWN_KV_OPTIONS:
            reading.refuse((), f"unrecognized arguments: --{shown(key)[1:-1]}", did_you_mean(key, KNOWN_KV_OPTIONS))
        if key == "config":
            reading.warn(("--config",), "the file is not read; what it sets is missing here")
        if key not in READ:
            continue
        if value is None:
            reading.fail((f"--{key}",), "has no value")
        if key == _TRANSFER and dot:
            dotted.add(inner, value)
        elif key == _TRANSFER:
            if transfer is not None:
                reading.warn((f"--{key}",), "stands twice, vLLM takes the last")
            transfer = value
        else:
            options.take(key, value, reading)
    if transfer is not None:
        options.transfer, options.locate = _decoded(transfer, text, reading)
    if dotted.found:
        if transfer is not None:
            reading.warn((f"--{_TRANSFER}",), "vLLM drops the JSON text: the options with dots replace the whole of it")
        options.transfer, options.locate = dotted.found, None
    return options


def _words(text: str, reading: Reading) -> list[str]:
    # shlex takes a # within a word for the start of a comment, which a shell does not.
    lexer = shlex.shlex(_INNER_HASH.sub(_PLACEHOLDER, _CONTINUED.sub(" ", text)), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return [word.replace(_PLACEHOLDER, "#") for word in lexer]
    except ValueError as error:
        last = max(text.rfind("'"), text.rfind('"'))
        line, column = line_and_column(text, last) if last >= 0 else (None, None)
        raise InputError(
            "the command line cannot be split into words: a quote has no partner",
            file=reading.file,
            line=line,
            column=column,
            hint="A text in single quotes ends at the next single quote.",
        ) from error


def _the_command(words: Sequence[str], reading: Reading) -> list[str]:
    """Of commands that stand one behind the other (`cd x && vllm serve …; date`) the one that is vLLM's."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _OPERATORS:
            commands.append([])
        else:
            commands[-1].append(word)
    ours = [one for one in commands if _serves(one) or any(looks_like_command(word) for word in one)]
    count = max(len(ours), *(len(_serves(one)) for one in ours), 0)
    if count > 1:
        reading.fail((), f"holds {count} vllm serve commands, expected one")
    return ours[0] if ours else []


def _serves(words: Sequence[str]) -> list[int]:
    """Where `serve` stands behind `vllm`."""
    return [at for at in range(1, len(words)) if words[at] == "serve" and words[at - 1].rpartition("/")[2] == "vllm"]


def _option(words: Sequence[str], index: int) -> tuple[str | None, str | None, int]:
    """The option at `index` (dashes for underscores up to the first dot), its value, and the words both take."""
    word = words[index]
    name, equals, value = word.partition("=")
    if name in _SHORT:
        name = f"--{_SHORT[name]}"
    if not name.startswith("--") or len(name) == 2:
        return None, None, 1
    head, dot, rest = name[2:].partition(".")
    name = head.replace("_", "-") + dot + rest
    if equals:
        return name, value, 1
    if head.replace("_", "-") in READ and index + 1 < len(words) and not words[index + 1].startswith("--"):
        return name, words[index + 1], 2
    return name, None, 1


class _Dotted:
    """Options such as `--kv-transfer-config.kv_role kv_both`, put together into one object."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.found: dict[str, object] = {}

    def add(self, inner: str, text: str) -> None:
        plus = inner.endswith("+")
        *outer, last = inner.removesuffix("+").split(".")
        holder = self.found
        for step in outer:
            held = holder.setdefault(step, {})
            if not isinstance(held, dict):
                held = holder[step] = {}
            holder = held
        value: object = text.split(",") if plus else self._value(text)
        there = holder.get(last)
        if isinstance(there, list) and isinstance(value, list):
            value = there + value
        elif last in holder:
            self.reading.warn((f"--{_TRANSFER}.{inner}",), "stands twice, vLLM takes the last")
        holder[last] = value

    def _value(self, text: str) -> object:
        """JSON where it is, else a number with a suffix such as 80g, else the text itself, as vLLM takes it."""
        try:
            return decode_json(text, "")
        except InputError:
            match = _HUMAN.fullmatch(text.strip())
        if match is None or ("." in match[1] and match[2].isupper()):
            return text
        return int(float(match[1]) * _SUFFIXES[match[2]]) if "." in match[1] else int(match[1]) * _SUFFIXES[match[2]]


def _decoded(json_text: str, text: str, reading: Reading) -> tuple[object, Locate | None]:
    """The value of the JSON in a command line; errors name the place in the command line where that can be told."""
    start = text.rfind(json_text)

    def moved(line: int, column: int) -> tuple[int, int]:
        first, before = line_and_column(text, start)
        return (first, before + column - 1) if line == 1 else (first + line - 1, column)

    def locate(path: Sequence[Step]) -> tuple[int, int] | None:
        from kvtier_cli.tiering.yaml_text import locate as locate_in_json

        found = locate_in_json(json_text, path)
        return None if found is None or start < 0 else moved(*found)

    try:
        value = decode_json(json_text, f"--{_TRANSFER}")
        warn_of_repeated_keys(json_text, reading)
        return value, locate
    except InputError as error:
        hint = error.hint
        if "$" in json_text:
            hint = "No variable of the shell is expanded here: write the value."
        if start < 0 or error.line is None or error.column is None:
            message = f"--{_TRANSFER}: {error.message}"
            where = "" if error.column is None else f" (column {error.column} of its text)"
            raise InputError(message + where, file=reading.file, hint=hint) from error
        line, column = moved(error.line, error.column)
        raise InputError(
            f"--{_TRANSFER} is {error.message}", file=reading.file, line=line, column=column, hint=hint
        ) from error


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at `offset`."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
