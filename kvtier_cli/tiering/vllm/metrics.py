"""What a server's own metrics say of its CPU tier: `vllm:kv_offload_config_info` in the text of /metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

NAME: Final = "vllm:kv_offload_config_info"
_SERIES = re.compile(rf"^{NAME}\{{(.*)\}}\s+\S+", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PRIMARY: Final = "0:primary"


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """The labels of the primary's series. `tokens` is None where the server does not know its longest request.

    `tiers`: the labels of the secondary tiers, in order; None where the server has no tiering.
    """

    chunks: int
    blocks_per_chunk: int
    size: int
    tokens: int | None
    tiers: tuple[str, ...] | None


def read_config_info(text: str, name: str) -> ConfigInfo:
    """What `text` (the Prometheus format) says. `name` is what errors call its source. Raises InputError."""
    found: dict[ConfigInfo, int] = {}
    labels = [
        (dict(_LABEL.findall(match[1])), text.count("\n", 0, match.start()) + 1) for match in _SERIES.finditer(text)
    ]
    if not labels:
        raise InputError(
            f"has no {NAME}", file=name, hint="Save what the server answers under /metrics, with the connector in use."
        )
    tiers = tuple(sorted({row["tier"] for row, _ in labels if row.get("tier", _PRIMARY) != _PRIMARY}, key=_order))
    for row, line in labels:
        if row.get("tier", _PRIMARY) == _PRIMARY:
            found.setdefault(_primary(row, tiers if "tier" in row else None, name, line), line)
    if not found:
        raise InputError(f'{NAME} has no series of the tier "{_PRIMARY}"', file=name)
    if len(found) > 1:
        raise InputError(
            f"describes {len(found)} servers whose CPU tiers differ, expected one",
            file=name,
            line=list(found.values())[1],
        )
    return next(iter(found))


def _primary(row: dict[str, str], tiers: tuple[str, ...] | None, name: str, line: int) -> ConfigInfo:
    def number(label: str) -> int:
        text = row.get(label, "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InputError(f"expected a number in the label {label}, found {shown(text)}", file=name, line=line)
        return int(text)

    chunks, size = number("cpu_num_chunks"), number("cpu_kv_cache_size_bytes")
    blocks = number("cpu_blocks_per_chunk")
    tokens = (
        number("cpu_kv_cache_size_tokens") if row.get("cpu_kv_cache_size_tokens") not in (None, "", "None") else None
    )
    if chunks and size % chunks:
        raise InputError(f"{size:,} bytes are no whole number for each of {chunks:,} chunks", file=name, line=line)
    if not blocks:
        raise InputError("expected a number from 1 in the label cpu_blocks_per_chunk, found 0", file=name, line=line)
    return ConfigInfo(chunks, blocks, size, tokens, tiers)


def _order(label: str) -> tuple[int, str]:
    number = label.partition(":")[0]
    return (int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0, label)
