"""The options of `vllm serve` that bear on KV tiers, wherever they come from: a command line, a file, a bare object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_cli.tiering.vllm.reading import Locate, Reading, python_int
from kvtier_cli.wording import one_of, shown

GPU_BLOCK_TOKENS: Final = 16
"""vLLM's default of --block-size; some attention backends choose another."""

CONFIG_KEYS: Final = ("kv_transfer_config", "kv-transfer-config", "kv_offloading_size", "kv-offloading-size")
"""Keys by which a file for `vllm serve --config` is told from other objects."""

KNOWN_KV_OPTIONS: Final = (
    "kv-cache-dtype",
    "kv-cache-dtype-skip-layers",
    "kv-cache-memory-bytes",
    "kv-cache-metrics",
    "kv-cache-metrics-sample",
    "kv-events-config",
    "kv-offloading-backend",
    "kv-offloading-size",
    "kv-sharing-fast-prefill",
    "kv-transfer-config",
)

_WHOLE: Final = {
    "block-size": "block_size",
    "tensor-parallel-size": "tensor_parallel",
    "pipeline-parallel-size": "pipeline_parallel",
    "data-parallel-size": "data_parallel",
    "decode-context-parallel-size": "decode_context_parallel",
    "prefill-context-parallel-size": "prefill_context_parallel",
}
_WORDS: Final = {"kv-cache-dtype": "kv_cache_dtype", "dtype": "dtype", "kv-offloading-backend": "offloading_backend"}
READ: Final = frozenset(
    {
        *_WHOLE,
        *_WORDS,
        "kv-transfer-config",
        "kv-offloading-size",
        "speculative-config",
        "kv-cache-dtype-skip-layers",
        "model",
    }
)
"""The options whose values are read."""


@dataclass(slots=True)
class ServeOptions:
    """`transfer`: the KVTransferConfig as given, None for none. `offloading_gib`: --kv-offloading-size in GiB.

    `block_size` is the GPU's, in tokens, None where not given; the rest at vLLM's defaults. `locate` tells the place
    of a path within `transfer`.
    """

    transfer: object = None
    locate: Locate | None = None
    offloading_gib: float | None = None
    offloading_backend: str = "native"
    simple_offloading: bool = False
    block_size: int | None = None
    kv_cache_dtype: str = "auto"
    dtype: str = "auto"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    decode_context_parallel: int = 1
    prefill_context_parallel: int = 1
    speculative: bool = False
    skips_layers: bool = False
    model: str | None = None

    def take(self, name: str, value: object, reading: Reading) -> None:
        """Sets the option `name` (dashes, without the two in front) from a value of the command line or a file."""
        path = (f"--{name}",)
        if name in _WHOLE:
            number = python_int(value)
            if number is None or number < 1:
                reading.fail(path, f"expected a number from 1, found {shown(value)}")
            setattr(self, _WHOLE[name], number)
        elif name in _WORDS:
            if not isinstance(value, str) or not value:
                reading.fail(path, f"expected a word, found {shown(value)}")
            setattr(self, _WORDS[name], value)
            if name == "kv-offloading-backend" and value not in ("native", "lmcache"):
                reading.refuse(path, f"{shown(value)} is no backend", f"expected {one_of(('native', 'lmcache'))}")
        elif name == "kv-offloading-size":
            self.offloading_gib = _gib(value, reading)
        elif name == "model":
            self.model = value if isinstance(value, str) else None
        elif name == "speculative-config":
            self.speculative = True
        elif name == "kv-cache-dtype-skip-layers":
            self.skips_layers = True


def options_from_file(value: Mapping[str, object], reading: Reading) -> ServeOptions:
    """The options in a file for `vllm serve --config`, read as an object; its keys in either spelling."""
    options = ServeOptions()
    for key, given in value.items():
        name = key.replace("_", "-") if isinstance(key, str) else ""
        if name == "kv-transfer-config":
            options.transfer, place = given, (key,)
            if isinstance(given, str):
                from kvtier_cli.tiering.json_text import decode_json

                options.transfer = decode_json(given, f"{reading.file or 'topology'}: {key}")
            elif (outer := reading.locate) is not None:
                options.locate = lambda path, outer=outer, place=place: outer((*place, *path))
        elif name in READ and given is not None:
            options.take(name, given, reading)
    return options


def _gib(value: object, reading: Reading) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else float("nan")
    except (ValueError, OverflowError):
        number = float("nan")
    if not 0 <= number < float("inf"):
        reading.fail(("--kv-offloading-size",), f"expected a number of GiB, found {shown(value)}")
    return number
