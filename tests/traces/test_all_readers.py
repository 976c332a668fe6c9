"""What holds for the traces of every format, made from the examples of `examples.py`."""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kvtier_cli.errors import InputError
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.formats import FORMATS
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.order import in_arrival_order
from kvtier_cli.traces.reader import TraceReader
from kvtier_cli.traces.source import TraceSource
from tests.traces.examples import EXAMPLES, WITH_LINES, Example

Opened = Callable[[bytes], TraceSource]

BOM = b"\xef\xbb\xbf"
PACKED = {"gzip": gzip.compress, "zstd": zstandard.compress}

formats = pytest.mark.parametrize("name", EXAMPLES)
line_formats = pytest.mark.parametrize("name", WITH_LINES)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A source of given bytes, in a file whose name says nothing."""
    monkeypatch.chdir(tmp_path)

    def make(content: bytes) -> TraceSource:
        Path("t").write_bytes(content)
        return TraceSource("t")

    return make


def reader_of(name: str, source: TraceSource, **options: Any) -> TraceReader:
    """The reader that `--format` gets; `max_line_bytes` only it takes."""
    return FORMATS[name].reader_class()(source, TraceOptions(name), **options)


def read(name: str, source: TraceSource, **options: Any) -> list[tuple[list[int | str], int, float | None]]:
    reader = reader_of(name, source, **options)
    return [(request.hash_ids, request.input_length, request.timestamp) for request in reader]


def fault(name: str, source: TraceSource, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(name, source, **options)
    return caught.value


def row(example: Example, ids: list[Any] | None = None, length: int | None = None, time: Any = 0) -> dict[str, Any]:
    """A record of one block, or what is said."""
    assert example.row is not None
    size = example.block_tokens if length is None else length
    return example.row([1] if ids is None else ids, size, time)


def written_with(example: Example, key: str, value: bytes) -> bytes:
    """A record whose field `key` is written as `value`, be it JSON or not."""
    return json.dumps(changed(row(example), key, "HERE")).encode().replace(b'"HERE"', value)


def changed(record: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of a record whose field `key`, a path, is `value`."""
    copy = json.loads(json.dumps(record))
    *outer, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    inner = copy
    for part in outer:
        inner = inner[part]
    inner[last] = value
    return copy  # type: ignore[no-any-return]


def path(key: str) -> str:
    """How a message names a field."""
    return "$" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in key.split("."))


def test_every_format_has_an_example() -> None:
    assert EXAMPLES.keys() == FORMATS.keys()


# --- the trace as a whole ---


@formats
def test_an_example_is_read_as_it_says(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    reader = reader_of(name, opened(example.content))
    found = [(request.hash_ids, request.input_length, request.timestamp) for request in reader]
    assert found == list(example.requests)
    assert [request.index for request in reader] == list(range(len(found)))
    assert (reader.requests, reader.blocks) == (len(found), sum(len(ids) for ids, _, _ in found))
    assert (reader.block_tokens, reader.bad_lines, reader.odd_requests) == (example.block_tokens, 0, 0)
    assert reader.warnings == list(example.notes)


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, example in EXAMPLES.items() for form in range(len(example.forms))]
)
def test_it_may_be_written_otherwise(name: str, form: int, opened: Opened) -> None:
    assert read(name, opened(EXAMPLES[name].forms[form])) == list(EXAMPLES[name].requests)


@formats
def test_its_content_alone_tells_the_format(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    detected = detect_format(opened(example.content)).name
    assert (detected == name) is example.by_itself


@formats
def test_it_replays_in_order_of_arrival(name: str, opened: Opened) -> None:
    run = TraceRun([opened(EXAMPLES[name].content)], BUILT_IN, reading=TraceOptions(name))
    figures = run.run()
    assert figures["requests"] == len(EXAMPLES[name].requests)
    assert run.loop.block_tokens == EXAMPLES[name].block_tokens


@formats
@pytest.mark.parametrize("kind", PACKED)
def test_it_is_read_packed_whatever_the_file_is_called(name: str, kind: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    source = opened(PACKED[kind](example.content))
    assert source.compression == kind
    assert read(name, source) == list(example.requests)


@formats
@pytest.mark.parametrize("kind", PACKED)
def test_packed_data_that_are_cut_off_are_an_error_even_with_skip_bad(name: str, kind: str, opened: Opened) -> None:
    packed = PACKED[kind](EXAMPLES[name].content)
    for cut in (len(packed) - 1, len(packed) // 2, 11):
        found = fault(name, opened(packed[:cut]), skip_bad=True)
        assert isinstance(found, TraceFault)
        assert found.message == f"its {kind} data are cut off"


@formats
def test_a_pipe_is_read_like_a_file(name: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(EXAMPLES[name].content),))
    writer.start()
    source = TraceSource(pipe)
    writer.join()
    assert read(name, source) == list(EXAMPLES[name].requests)


@formats
def test_what_a_writer_adds_meanwhile_is_not_read(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    source = opened(example.content)
    requests = iter(reader_of(name, source))
    next(requests)
    with Path("t").open("ab") as writer:
        writer.write(example.content)
    assert len(list(requests)) == len(example.requests) - 1


@formats
def test_progress_adds_up_to_the_size_of_the_file(name: str, opened: Opened) -> None:
    heard: list[int] = []
    source = opened(gzip.compress(EXAMPLES[name].content))
    read(name, source, on_bytes=heard.append)
    assert sum(heard) == source.size


@formats
@pytest.mark.parametrize("content", [b"", b"\n", b"\x00\xff\x00" * 40, b"null", b"hello,world\n"])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_what_is_none_is_an_error(name: str, content: bytes, skip_bad: bool, opened: Opened) -> None:
    with pytest.raises(InputError):
        read(name, opened(content), skip_bad=skip_bad)


def mangled(content: bytes, random_: random.Random) -> bytes:
    """A copy with some bytes changed, taken out, doubled or cut off."""
    found = bytearray(content)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(found))
        match random_.randrange(5):
            case 0:
                found[at] ^= 1 << random_.randrange(8)
            case 1:
                found[at] = random_.choice(b'\x00\xff"{}[]:,-9eE.\\\n\r ')
            case 2:
                del found[at : at + random_.randint(1, 8)]
            case 3:
                found[at:at] = found[max(0, at - random_.randint(1, 40)) : at]
            case _:
                del found[max(at, 1) :]
        if not found:
            return b"\n"
    return bytes(found)


def fuzz(name: str, seed: int, opened: Opened) -> None:
    """Reads one mangled trace, to its end or to an InputError; nothing else may come of it."""
    random_ = random.Random(f"{name}{seed}")
    content = random_.choice([EXAMPLES[name].content, *EXAMPLES[name].forms])
    if random_.random() < 0.2:
        content = random_.choice([*PACKED.values()])(content)
    content = mangled(content, random_)
    skip_bad = random_.random() < 0.5
    with suppress(InputError):
        source = opened(content)
        reader = reader_of(name, source, skip_bad=skip_bad, max_line_bytes=random_.choice([100, 1 << 20]))
        ordered, _ = in_arrival_order(reader)
        list(ordered)
    with suppress(InputError):
        list(read_trace(opened(content), skip_bad=skip_bad))


@formats
def test_a_mangled_trace_is_read_or_refused(name: str, opened: Opened) -> None:
    for seed in range(100):
        fuzz(name, seed, opened)


@pytest.mark.soak
@formats
def test_many_mangled_traces_are_read_or_refused(name: str, opened: Opened) -> None:
    for seed in range(100, 50_000):
        fuzz(name, seed, opened)


@formats
def test_a_field_that_is_asked_for_comes_with_each_request_or_cannot(name: str, opened: Opened) -> None:
    source = opened(EXAMPLES[name].content)
    form = FORMATS[name].reader_class()
    if not form.HAS_TAGS:
        with pytest.raises(InputError, match="no tenant"):
            form(source, TraceOptions(name, tags=("tenant",)))
        return
    assert {request.tags for request in form(source, TraceOptions(name, tags=("tenant",)))} == {(None,)}


# --- formats with a JSON object a line ---


@line_formats
@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n \n"], ids=["newline", "no newline", "blank lines"])
@pytest.mark.parametrize("eol", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("start", [b"", BOM, b"\n\n"], ids=["plain", "bom", "blank lines first"])
def test_the_ends_of_lines_and_files_do_not_matter(
    name: str, start: bytes, eol: bytes, end: bytes, opened: Opened
) -> None:
    example = EXAMPLES[name]
    lines = example.content.splitlines()
    source = opened(start + (eol + eol).join(lines) + end)
    assert read(name, source) == list(example.requests)
    assert (detect_format(source).name == name) is example.by_itself


@line_formats
def test_a_bad_line_in_the_middle_ends_it_or_is_skipped(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    before = 1 + bool(example.header)
    source = opened(example.lines(row(example), written_with(example, example.ids_key, b"[1 2]"), row(example)))
    found = fault(name, source)
    assert (found.file, found.line) == ("t", before + 1)
    assert found.hint == "1 request was read before it. Continue past bad lines with --skip-bad."
    reader = reader_of(name, source, skip_bad=True)
    assert [request.line for request in reader] == [before, before + 2]
    assert (reader.requests, reader.bad_lines) == (2, 1)
    assert any(each.startswith("1 bad line skipped; the first: t:") for each in reader.warnings)


@line_formats
def test_a_last_line_that_is_cut_off_says_so(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    line = json.dumps(row(example)).encode()
    found = fault(name, opened(example.lines(line, line[:-3], end=b"")))
    assert "the last line is cut off" in found.message


@line_formats
def test_a_line_beyond_the_limit_is_bad(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    source = opened(example.lines(row(example), row(example, ids=[10**300]), row(example)))
    assert fault(name, source, max_line_bytes=250).message == "the line is longer than 250 bytes"
    assert len(read(name, source, max_line_bytes=250, skip_bad=True)) == 2


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.by_itself])
def test_a_first_line_longer_than_what_is_looked_at_tells_the_format_by_its_keys(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    line = row(example, ids=list(range(100_000)))
    as_one = "mooncake" if name == "kvcache-simulator" else name  # which alone it is not
    assert detect_format(opened(example.lines(line))).name == as_one


@line_formats
def test_any_id_is_kept_exactly_and_numbers_in_quotes_are_the_numbers(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    ids = [1, "1", 2**53 + 1, 2**64, -1, "01", "1.0", "", "a b", "\u00e9", str(2**70)]
    source = opened(example.lines(row(example, ids=ids, length=len(ids) * example.block_tokens)))
    found = [1, 1, 2**53 + 1, 2**64, -1, "01", "1.0", "", "a b", "\u00e9", 2**70]
    if name == "kv-events":  # some servers publish their 64 bits as a signed number
        found[4] = 2**64 - 1
    assert read(name, source)[0][0] == example.named(*found)


@line_formats
@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b"[1.5]", "expected int or str, got float"),
        (b"[true]", "expected int or str, got bool"),
        (b"[null]", "expected int or str, got null"),
        (b"[[1]]", "expected int or str, got array"),
        (b"null", "expected array, got null"),
        (b"7", "expected array, got int"),
        (b"[" + b"9" * 5000 + b"]", "at most 4,299 digits"),
        (b"[NaN]", "NaN is no JSON number"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_ids_that_are_none_are_refused_with_their_line(name: str, written: bytes, words: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    found = fault(name, opened(example.lines(row(example), written_with(example, example.ids_key, written))))
    assert words in found.message
    assert found.line == 2 + bool(example.header)


@line_formats
@pytest.mark.parametrize("key", ["hash_ids", "x"])
def test_a_hundred_thousand_brackets_are_a_bad_line(name: str, key: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    source = opened(example.lines(written_with(example, key, b"[" * 100_000), row(example)))
    assert fault(name, source).line == 1 + bool(example.header)
    assert len(read(name, source, skip_bad=True)) == 1


@line_formats
def test_without_ids_a_trace_says_what_it_lacks(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    ids_name = example.ids_key.rpartition(".")[2]
    bare = json.dumps(changed(row(example), example.ids_key, [])).replace(f', "{ids_name}": []', "")
    bare = bare.replace(f'"{ids_name}": [], ', "")
    found = fault(name, opened(example.lines(bare.encode())))
    assert found.message == f"the request has no {ids_name}"
    assert found.hint is not None
    assert found.hint.startswith("Without the ids of its blocks")


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.length_key])
def test_ids_that_do_not_fill_the_length_are_counted(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    size = example.block_tokens
    rows = [row(example, [1, 2], 2 * size), row(example, [1, 2], size), row(example, [1], 3 * size)]
    reader = reader_of(name, opened(example.lines(*rows)))
    assert len(list(reader)) == 3
    assert reader.odd_requests == 2
    assert "2 of 3 requests list more or fewer blocks" in reader.warnings[-1]


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.length_key])
@pytest.mark.parametrize("written", [b"-1", b"1.5", b'"7"', b"null", b"9007199254740993", b"1e999", b"9" * 5000])
def test_lengths_that_are_none_are_refused(name: str, written: bytes, opened: Opened) -> None:
    example = EXAMPLES[name]
    assert example.length_key
    found = fault(name, opened(example.lines(written_with(example, example.length_key, written))))
    assert found.path == path(example.length_key)


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.time_key])
@pytest.mark.parametrize("written", [b"NaN", b"Infinity", b"1e999", b'"noon"', b"true", b"1e300", b"[]"])
def test_times_that_are_none_are_refused(name: str, written: bytes, opened: Opened) -> None:
    example = EXAMPLES[name]
    assert example.time_key
    source = opened(example.lines(row(example), written_with(example, example.time_key, written)))
    assert fault(name, source).line == 2 + bool(example.header)
    assert len(read(name, source, skip_bad=True)) == 1


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.time_key])
def test_requests_come_by_their_times_and_equal_ones_as_they_stand(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    start = 1 + bool(example.header)
    ordered, fall = in_arrival_order(
        reader_of(name, opened(example.lines(*[row(example, time=time) for time in (5, 3, 5, 3, 0.5)])))
    )
    assert [request.line - start for request in ordered] == [4, 1, 3, 0, 2]
    assert fall == start + 1
    in_order = reader_of(name, opened(example.lines(*[row(example, time=time) for time in (3, 3, 4)])))
    assert in_arrival_order(in_order) == (in_order, None)


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.time_key])
def test_a_line_that_is_left_out_does_not_count_for_the_order(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    bad = changed(row(example, time=9), example.ids_key, [None])
    source = opened(example.lines(row(example, time=3), bad, row(example, time=5)))
    assert reader_of(name, source, skip_bad=True).first_fall() is None


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is dropped in a cycle stays, as in a replay."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@line_formats
@pytest.mark.usefixtures("no_collector")
def test_many_bad_lines_take_no_memory(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    bad = written_with(example, example.ids_key, b"[1 2]")
    reader = reader_of(name, opened(example.lines(row(example), *[bad] * 300)), skip_bad=True)
    before = len(gc.get_objects())
    assert len(list(reader)) == 1
    assert reader.bad_lines == 300
    assert len(gc.get_objects()) - before < 300


@pytest.mark.parametrize("name", [name for name, example in WITH_LINES.items() if example.block_size_key])
def test_blocks_of_two_sizes_are_refused(name: str, opened: Opened) -> None:
    example = EXAMPLES[name]
    assert example.block_size_key
    rows = [changed(row(example), example.block_size_key, size) for size in (64, 64, 16)]
    found = fault(name, opened(example.lines(*rows)), skip_bad=True)
    assert (found.line, found.path) == (3, path(example.block_size_key))
    assert found.message.startswith("blocks of 16 tokens, but of 64 before")
