"""KV bytes of a token from a model's `config.json`, as vLLM 0.33.0 lays its cache out, or why they cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.vllm.serve import ServeOptions
from kvtier_cli.wording import shown

ASK: Final = "Give --bytes-per-token, or the server's own --metrics."

_BYTES: Final = {
    "float16": 2,
    "half": 2,
    "bfloat16": 2,
    "float32": 4,
    "float": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}
_MLA: Final = frozenset({"axk1", "deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_k2", "pangu_ultra_moe"})
"""Types of models that vLLM gives one latent vector a token, and nothing else, where they have a kv_lora_rank."""

_HYBRID: Final = (
    "attention_chunk_size",
    "attn_config",
    "attn_layer_period",
    "block_configs",
    "cla_share_factor",
    "compress_ratios",
    "cross_attention_layers",
    "full_attention_interval",
    "global_head_dim",
    "hybrid_override_pattern",
    "index_head_dim",
    "index_topk",
    "layers_block_type",
    "linear_attn_config",
    "linear_num_key_heads",
    "mamba_d_conv",
    "mamba_d_state",
    "multi_query",
    "multi_query_attention",
    "new_decoder_architecture",
    "num_kv_shared_layers",
    "per_layer_config",
    "sliding_window_pattern",
    "ssm_cfg",
    "ssm_state_size",
    "state_size",
    "use_mamba_kernels",
)
"""Keys of models whose layers do not all keep the same full-attention cache, or count their heads another way."""


@dataclass(frozen=True, slots=True)
class KvBytes:
    """`each`: KV bytes of a token over all workers, `how` they come about. `single_copy`: one host copy serves all."""

    each: int
    how: str
    single_copy: bool = False


def kv_bytes(config: object, name: str, options: ServeOptions) -> KvBytes:
    """The KV bytes of a token of the model whose `config.json` holds `config`, served with `options`.

    Full attention keeps K and V of each KV head in each layer, MLA one vector of kv_lora_rank + qk_rope_head_dim.
    Raises InputError for what is no such file, and for models and options where that does not hold.
    """
    return _Model(config, name, options).read()


class _Model:
    def __init__(self, config: object, name: str, options: ServeOptions) -> None:
        if not isinstance(config, dict):
            raise InputError("expected a model's config.json", file=name)
        self.name, self.options = name, options
        text = config.get("text_config")
        self.path = "text_config." if isinstance(text, dict) else ""
        self.text: Mapping[str, object] = text if isinstance(text, dict) else config
        self.config: Mapping[str, object] = config

    def fail(self, key: str | None, message: str, hint: str = ASK) -> NoReturn:
        raise InputError(message, file=self.name, path=f"{self.path}{key}" if key else None, hint=hint)

    def read(self) -> KvBytes:
        self._refuse_what_cannot_be_told()
        layers = self._number("num_hidden_layers")
        size, dtype = self._element()
        if layers % self.options.pipeline_parallel:
            self.fail(
                "num_hidden_layers", f"{layers} layers in {self.options.pipeline_parallel} unequal pipeline stages"
            )
        if self.text.get("kv_lora_rank") is not None:
            return self._latent(layers, size, dtype)
        heads = self._number("num_attention_heads") if "num_attention_heads" in self.text else None
        kv_heads = self._kv_heads(heads)
        dim = self._head_dim(heads)
        workers = self.options.tensor_parallel
        stored, said = kv_heads, f"{kv_heads} KV heads"
        if workers > 1 and kv_heads % workers and workers % kv_heads:
            self.fail("num_key_value_heads", f"{kv_heads} KV heads cannot be split between {workers} workers")
        if workers > kv_heads:
            stored, said = workers, f"{workers} KV heads ({kv_heads}, copied to {workers} workers)"
        each = 2 * layers * stored * dim * size
        return KvBytes(each, f"2 (K, V) x {layers} layers x {said} x {dim} x {size} ({dtype}) = {each:,}")

    def _latent(self, layers: int, size: int, dtype: str) -> KvBytes:
        model_type = self.config.get("model_type")
        if self.text.get("model_type", model_type) not in _MLA:
            self.fail("model_type", f"it cannot be told how vLLM keeps the latent cache of {shown(model_type)}")
        rank, rope = self._number("kv_lora_rank"), self._number("qk_rope_head_dim")
        each = layers * (rank + rope) * size
        how = f"{layers} layers x ({rank} + {rope}) x {size} ({dtype}, MLA) = {each:,}"
        if self.options.pipeline_parallel > 1 and self.options.tensor_parallel > 1:
            self.fail(
                "kv_lora_rank", "with tensor and pipeline parallelism each worker keeps a copy of the latent cache"
            )
        return KvBytes(each, how, single_copy=self.options.tensor_parallel > 1)

    def _refuse_what_cannot_be_told(self) -> None:
        for key in _HYBRID:
            if self.text.get(key) not in (None, False, 0, [], {}, ""):
                self.fail(key, "the layers of this model do not all keep the same full-attention cache")
        kinds = self.text.get("layer_types")
        if isinstance(kinds, list) and any(kind != "full_attention" for kind in kinds):
            other = next(kind for kind in kinds if kind != "full_attention")
            self.fail("layer_types", f"some layers are {shown(other)}, not full_attention")
        if self.text.get("sliding_window") is not None and self.text.get("use_sliding_window", True):
            self.fail("sliding_window", "the attention slides over a window, which is not modelled")
        if self.config.get("is_encoder_decoder"):
            raise InputError("is a model with an encoder", file=self.name, path="is_encoder_decoder", hint=ASK)
        options = self.options
        for given, what in (
            (options.speculative, "--speculative-config: the layers of a draft model keep KV too"),
            (options.skips_layers, "--kv-cache-dtype-skip-layers: the layers do not all keep the same bytes"),
            (options.decode_context_parallel > 1, "--decode-context-parallel-size spreads the tokens of a block"),
            (options.prefill_context_parallel > 1, "--prefill-context-parallel-size spreads the tokens of a block"),
        ):
            if given:
                raise InputError(f"{what}, so its KV bytes cannot be told from config.json", file=self.name, hint=ASK)

    def _element(self) -> tuple[int, str]:
        """Bytes of one number of the cache, and the word for it."""
        cache = self.options.kv_cache_dtype
        if cache != "auto":
            if cache not in _BYTES:
                self.fail(None, f"how many bytes a KV cache of {shown(cache)} takes cannot be told")
            return _BYTES[cache], cache
        quantization = self.config.get("quantization_config")
        if isinstance(quantization, dict):
            for key in ("kv_cache_scheme", "kv_cache_quant_algo"):
                if quantization.get(key) is not None:
                    self.fail(None, f"quantization_config.{key} sets the KV cache's own type", "Give --kv-cache-dtype.")
        given = self.options.dtype
        if given == "auto":
            found = self.text.get("dtype") or self.text.get("torch_dtype")
            found = found or self.config.get("dtype") or self.config.get("torch_dtype")
            if found is None:
                self.fail(None, "names no dtype", "Give --kv-cache-dtype, such as bfloat16.")
            given = found.removeprefix("torch.") if isinstance(found, str) else shown(found)
            if given in ("float32", "float"):  # vLLM serves it in 16 bits unless told otherwise
                return 2, "16 bits for float32"
        if given not in _BYTES:
            self.fail(None, f"the dtype {shown(given)} is not known", "Give --kv-cache-dtype, such as bfloat16.")
        return _BYTES[given], given

    def _kv_heads(self, heads: int | None) -> int:
        for key in (
            "n_head_kv",
            "num_kv_heads",
            "num_key_value_heads",
            "multi_query_group_num",
            "num_attention_groups",
        ):
            if self.text.get(key) is not None:
                return self._number(key)
        return heads if heads is not None else self._number("num_key_value_heads")

    def _head_dim(self, heads: int | None) -> int:
        if self.text.get("head_dim") not in (None, 0):
            return self._number("head_dim")
        if self.text.get("hidden_size_per_head") is not None:
            return self._number("hidden_size_per_head")
        hidden = self._number("hidden_size")
        return hidden // (heads if heads is not None else self._number("num_attention_heads"))

    def _number(self, key: str) -> int:
        value = self.text.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
            found = f", found {shown(value)}" if key in self.text else ": it is not there"
            self.fail(key, f"expected a number from 1{found}")
        return value
