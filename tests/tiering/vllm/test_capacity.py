"""How many blocks cpu_bytes_to_use holds: vLLM's arithmetic from each of the three sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.vllm.capacity import Sizes
from kvtier_cli.tiering.vllm.model_config import kv_bytes
from kvtier_cli.tiering.vllm.serve import ServeOptions
from tests.tiering.vllm.configs import FS, GIB, SIZES, extra, imported

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "torch_dtype": "bfloat16",
}
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "num_hidden_layers": 61,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "torch_dtype": "bfloat16",
}
PRIMARY = (
    'vllm:kv_offload_config_info{{cpu_blocks_per_chunk="{blocks}",cpu_kv_cache_size_bytes="{size}",'
    'cpu_kv_cache_size_tokens="{tokens}",cpu_num_chunks="{chunks}",engine="{engine}",tier="0:primary"}} 1.0\n'
)
SECONDARY = (
    'vllm:kv_offload_config_info{cpu_blocks_per_chunk="",cpu_kv_cache_size_bytes="",cpu_kv_cache_size_tokens="",'
    'cpu_num_chunks="",engine="0",tier="1:fs"} 1.0\n'
)


def _series(
    chunks: int = 4096, *, size: int = 8 * GIB, blocks: int = 1, tokens: object = 65536, engine: int = 0
) -> str:
    return PRIMARY.format(chunks=chunks, size=size, blocks=blocks, tokens=tokens, engine=engine)


def _metrics(tmp_path: Path, text: str) -> Sizes:
    (tmp_path / "metrics").write_text(text)
    return Sizes(metrics=str(tmp_path / "metrics"))


class TestBytesPerToken:
    @pytest.mark.parametrize(
        ("changes", "tokens", "blocks"),
        [
            ({}, 16, 4096),
            ({"blocks_per_chunk": 4}, 64, 1024),
            ({"blocks_per_chunk": "4"}, 64, 1024),
            ({"block_size": 64}, 64, 1024),
            ({"cpu_bytes_to_use": 8e9}, 16, 3814),
            ({"cpu_bytes_to_use": "8000000000"}, 16, 3814),
        ],
    )
    def test_a_block_is_a_chunk_of_vllms(self, changes: dict[str, object], tokens: int, blocks: int) -> None:
        found = imported(extra(FS, **changes)).topology()
        assert (found.block.tokens, found.block.bytes_per_token) == (tokens, 128 * 1024)
        assert found.primary.capacity == blocks

    def test_a_block_takes_whole_pages(self) -> None:
        found = imported(extra(FS, cpu_bytes_to_use=40960), Sizes(bytes_per_token=300))
        assert found.primary.capacity == 5  # 4,800 bytes take 8,192
        assert "in whole pages of 4,096: 8,192" in " ".join(step.how for step in found.arithmetic)

    def test_the_gpu_block_is_vllms_default_unless_told(self) -> None:
        assert any("GPU blocks of 16 tokens are vLLM's default" in note for note in imported(extra(FS)).notes)
        told = imported(extra(FS), Sizes(bytes_per_token=128 * 1024, block_size=32))
        assert (told.block.tokens, told.primary.capacity, told.notes) == (32, 2048, ())

    def test_every_step_is_shown(self) -> None:
        assert [(step.what, step.how) for step in imported(extra(FS, blocks_per_chunk=2), SIZES).arithmetic] == [
            ("tokens a block", "16 (vLLM's default) x 2 blocks_per_chunk = 32"),
            ("KV bytes a token", "131,072 as given"),
            ("bytes a block", "131,072 x 32 = 4,194,304"),
            ("blocks", "8,589,934,592 // 4,194,304 = 2,048"),
        ]


class TestModelConfig:
    @pytest.mark.parametrize(
        ("changes", "options", "expected"),
        [
            ({}, {}, 131072),
            ({"head_dim": 64}, {}, 65536),
            ({"num_key_value_heads": None}, {}, 4 * 131072),
            ({"torch_dtype": None, "dtype": "float16"}, {}, 131072),
            ({"torch_dtype": "float32"}, {}, 131072),
            ({"torch_dtype": "float32"}, {"dtype": "float32"}, 262144),
            ({}, {"kv_cache_dtype": "fp8"}, 65536),
            ({}, {"tensor_parallel": 8}, 131072),
            ({}, {"tensor_parallel": 16}, 262144),
            ({}, {"pipeline_parallel": 2}, 131072),
            ({"sliding_window": 4096, "use_sliding_window": False}, {}, 131072),
            ({"layer_types": ["full_attention"] * 32}, {}, 131072),
        ],
    )
    def test_full_attention_keeps_k_and_v_of_each_kv_head(
        self, changes: dict[str, object], options: dict[str, Any], expected: int
    ) -> None:
        assert kv_bytes({**LLAMA, **changes}, "config.json", ServeOptions(**options)).each == expected

    @pytest.mark.parametrize(("workers", "single"), [(1, False), (8, True)])
    def test_mla_keeps_one_latent_vector_once_for_all_workers(self, workers: int, single: bool) -> None:
        found = kv_bytes(DEEPSEEK, "config.json", ServeOptions(tensor_parallel=workers))
        assert (found.each, found.single_copy) == (61 * 576 * 2, single)

    def test_a_multimodal_model_keeps_its_text_models_cache(self) -> None:
        assert kv_bytes({"model_type": "x", "text_config": LLAMA}, "c", ServeOptions()).each == 131072

    @pytest.mark.parametrize(
        ("config", "options", "said"),
        [
            ({**LLAMA, "sliding_window": 4096}, {}, "slides over a window"),
            ({**LLAMA, "layer_types": ["full_attention", "sliding_attention"]}, {}, '"sliding_attention"'),
            ({**LLAMA, "mamba_d_state": 16}, {}, "do not all keep the same"),
            ({**DEEPSEEK, "index_topk": 2048}, {}, "do not all keep the same"),
            ({**DEEPSEEK, "model_type": "minicpm3"}, {}, "cannot be told how vLLM keeps the latent cache"),
            ({**LLAMA, "is_encoder_decoder": True}, {}, "with an encoder"),
            ({**LLAMA, "quantization_config": {"kv_cache_scheme": {"num_bits": 8}}}, {}, "sets the KV cache's own"),
            ({**LLAMA, "torch_dtype": None}, {}, "names no dtype"),
            ({**LLAMA, "num_hidden_layers": None}, {}, "expected a number from 1, found null"),
            ({**LLAMA, "hidden_size": "4096"}, {}, 'expected a number from 1, found "4096"'),
            (LLAMA, {"kv_cache_dtype": "nvfp4"}, "cannot be told"),
            (LLAMA, {"speculative": True}, "draft model"),
            (LLAMA, {"decode_context_parallel": 2}, "spreads the tokens of a block"),
            (LLAMA, {"pipeline_parallel": 3}, "unequal pipeline stages"),
            ([], {}, "expected a model's config.json"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_told_is_said_and_asked_for(
        self, config: object, options: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(InputError) as raised:
            kv_bytes(config, "config.json", ServeOptions(**options))
        assert said in raised.value.message
        assert raised.value.file == "config.json"

    def test_the_file_is_read_and_named_in_the_arithmetic(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(LLAMA))
        found = imported(extra(FS), Sizes(model_config=str(tmp_path / "config.json")))
        assert found.primary.capacity == 4096
        assert found.arithmetic[1].how.startswith("2 (K, V) x 32 layers x 8 KV heads x 128 x 2 (bfloat16) = 131,072")


class TestMetrics:
    def test_the_servers_own_chunks_are_taken(self, tmp_path: Path) -> None:
        found = imported(extra(FS), _metrics(tmp_path, _series() + SECONDARY))
        assert (found.block.tokens, found.block.bytes_per_token, found.primary.capacity) == (16, 131072, 4096)
        assert found.warnings == ()

    def test_the_sample_of_a_real_server_is_read(self, recordings: Path) -> None:
        sample = recordings.parent / "reference" / "metrics_sample.prom"
        if not sample.is_file():
            pytest.skip(f"no sample of metrics at {sample}")
        assert imported(extra(FS), Sizes(metrics=str(sample))).primary.capacity == 4096

    @pytest.mark.parametrize("engine", [0, 1])
    def test_engines_that_agree_are_one(self, tmp_path: Path, engine: int) -> None:
        assert imported(extra(FS), _metrics(tmp_path, _series() + _series(engine=engine))).primary.capacity == 4096

    def test_a_server_that_does_not_know_its_longest_request_leaves_the_default_block(self, tmp_path: Path) -> None:
        found = imported(
            extra(FS, blocks_per_chunk=2), _metrics(tmp_path, _series(blocks=2, tokens="None") + SECONDARY)
        )
        assert (found.block.tokens, found.block.bytes_per_token) == (32, 65536)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (_series(2048) + SECONDARY, "give 2,048 blocks, "),
            (_series(blocks=4) + SECONDARY, "4 blocks a chunk, not 1"),
            (_series() + SECONDARY.replace("1:fs", "1:obj"), "its tiers are 1:obj"),
            (_series(), "its tiers are none"),
        ],
    )
    def test_metrics_of_another_configuration_are_a_warning(self, tmp_path: Path, text: str, said: str) -> None:
        if said.startswith("give"):
            text = text.replace(str(8 * GIB), str(4 * GIB))
            said = "give 4,096 blocks"
        assert any(said in warning for warning in imported(extra(FS), _metrics(tmp_path, text)).warnings)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "has no vllm:kv_offload_config_info"),
            ("vllm:num_requests_running 1\n", "has no vllm:kv_offload_config_info"),
            (SECONDARY, 'no series of the tier "0:primary"'),
            (_series() + _series(2048, engine=1), "2 servers whose CPU tiers differ"),
            (_series().replace('"4096"', '"many"'), "expected a number in the label cpu_num_chunks"),
            (_series(3), "no whole number for each"),
        ],
    )
    def test_what_tells_nothing_is_refused(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(InputError) as raised:
            imported(extra(FS), _metrics(tmp_path, text))
        assert said in raised.value.message
