#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny random models and what they compute, as NumPy in float64 computes it.

An implementation of its own of Llama and Qwen3, written from the papers' formulas: whole sequences, no cache, no pages, no
batching. Writes tests/golden/tiny/<model>/ for each model:

  config.json, *.safetensors    a Hugging Face folder
  expected.safetensors          prompt.<i>    [tokens]         I32
                                logits.<i>    [tokens, vocab]  F32, of every position
                                hidden.<i>    [hidden]         F32, of the last position, after the final norm
                                unrounded.<i> [tokens, vocab]  F32, logits before the weights were rounded to 16 bits

Same seed, same bytes. Usage: reference.py [output folder]
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

SEED = 20240611
PROMPT_TOKENS = [1, 17, 49]
LONG_PROMPT_TOKENS = [1, 17, 150]  # far enough for scaled rotary frequencies to differ


def llama(**changes):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 67,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
    config.update(changes)
    return config


def qwen3(**changes):
    config = llama(
        architectures=["Qwen3ForCausalLM"],
        model_type="qwen3",
        head_dim=16,  # not hidden_size / heads
        rms_norm_eps=1e-6,
        rope_theta=1000000.0,
        tie_word_embeddings=True,
        use_sliding_window=False,
        sliding_window=None,
        max_window_layers=2,
    )
    del config["mlp_bias"]
    config.update(changes)
    return config


LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,  # with 16-wide heads: some frequencies kept, some blended, some divided
}

# name -> (config, prompt lengths, number of files)
MODELS = {
    "llama_gqa": (llama(), PROMPT_TOKENS, 1),
    "llama_mqa_tied": (llama(hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=56,
                             tie_word_embeddings=True), PROMPT_TOKENS, 1),
    "llama_mha": (llama(num_key_value_heads=4), PROMPT_TOKENS, 1),
    "llama_rope_linear": (llama(num_attention_heads=2, num_key_value_heads=1,
                                rope_scaling={"type": "linear", "factor": 4.0}), LONG_PROMPT_TOKENS, 1),
    "llama_rope_llama3": (llama(num_attention_heads=2, num_key_value_heads=1, rope_scaling=LLAMA3_SCALING),
                          LONG_PROMPT_TOKENS, 1),
    "qwen3": (qwen3(), PROMPT_TOKENS, 1),
    "llama_bf16": (llama(torch_dtype="bfloat16"), PROMPT_TOKENS, 1),
    "llama_f16": (llama(torch_dtype="float16"), PROMPT_TOKENS, 1),
    "llama_sharded": (llama(tie_word_embeddings=True), PROMPT_TOKENS, 2),
    "qwen3_mqa_untied": (qwen3(hidden_size=24, num_attention_heads=3, num_key_value_heads=1, intermediate_size=40,
                               tie_word_embeddings=False), PROMPT_TOKENS, 1),
    "qwen3_mha_rope_linear": (qwen3(hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=40,
                                    rope_scaling={"rope_type": "linear", "factor": 4.0}), LONG_PROMPT_TOKENS, 1),
}


# ------------------------------------------------------------------------------------------------- weights and files


def head_dim(config):
    return config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])


def random_weights(config, rng):
    """Name -> float64 array. Large enough that attention is far from uniform."""
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    q_size = config["num_attention_heads"] * head_dim(config)
    kv_size = config["num_key_value_heads"] * head_dim(config)

    def matrix(outputs, inputs):
        return rng.standard_normal((outputs, inputs)) * 1.2 / np.sqrt(inputs)

    def norm(size):
        return 1.0 + 0.2 * rng.standard_normal(size)

    weights = {"model.embed_tokens.weight": rng.standard_normal((vocab, hidden))}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        weights[layer + "input_layernorm.weight"] = norm(hidden)
        weights[layer + "self_attn.q_proj.weight"] = matrix(q_size, hidden)
        weights[layer + "self_attn.k_proj.weight"] = matrix(kv_size, hidden)
        weights[layer + "self_attn.v_proj.weight"] = matrix(kv_size, hidden)
        weights[layer + "self_attn.o_proj.weight"] = matrix(hidden, q_size)
        if config["model_type"] == "qwen3":
            weights[layer + "self_attn.q_norm.weight"] = norm(head_dim(config))
            weights[layer + "self_attn.k_norm.weight"] = norm(head_dim(config))
        weights[layer + "post_attention_layernorm.weight"] = norm(hidden)
        weights[layer + "mlp.gate_proj.weight"] = matrix(ffn, hidden)
        weights[layer + "mlp.up_proj.weight"] = matrix(ffn, hidden)
        weights[layer + "mlp.down_proj.weight"] = matrix(hidden, ffn)
    weights["model.norm.weight"] = norm(hidden)
    if not config["tie_word_embeddings"]:
        weights["lm_head.weight"] = matrix(vocab, hidden)
    return weights


def to_bf16_bits(x):
    """Round to nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def encode(x, dtype):
    """(safetensors dtype, bytes, the values that a reader sees)."""
    if dtype == "bfloat16":
        bits = to_bf16_bits(x)
        return "BF16", bits.tobytes(), (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "float16":
        return "F16", x.astype(np.float16).tobytes(), x.astype(np.float16).astype(np.float64)
    if dtype == "int32":
        return "I32", x.astype(np.int32).tobytes(), x
    return "F32", x.astype(np.float32).tobytes(), x.astype(np.float32).astype(np.float64)


def write_safetensors(path, tensors):
    """`tensors`: name -> (dtype, shape, bytes)."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def write_weights(folder, encoded, files):
    if files == 1:
        write_safetensors(folder / "model.safetensors", encoded)
        return
    names = sorted(encoded)
    weight_map = {}
    for i in range(files):
        file = f"model-{i + 1:05}-of-{files:05}.safetensors"
        part = names[i * len(names) // files:(i + 1) * len(names) // files]
        write_safetensors(folder / file, {name: encoded[name] for name in part})
        weight_map.update({name: file for name in part})
    total = sum(len(data) for _, _, data in encoded.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


# ------------------------------------------------------------------------------------------------- the forward pass


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def inverse_frequencies(config):
    """[head_dim / 2]. The llama3 rule is that of the Llama 3.1 release: long waves are slowed by `factor`, short ones kept,
    those between blended linearly in the number of turns within the original context."""
    dim = head_dim(config)
    frequencies = config["rope_theta"] ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    scaling = config["rope_scaling"]
    if scaling is None:
        return frequencies
    if scaling.get("rope_type", scaling.get("type")) == "linear":
        return frequencies / scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return keep * frequencies + (1 - keep) * frequencies / scaling["factor"]


def rotate(x, frequencies):
    """x: [tokens, heads, head_dim]; pair i is (x[i], x[i + head_dim / 2])."""
    angles = np.arange(x.shape[0])[:, None, None] * frequencies
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], axis=-1)


def attention(config, weights, layer, x):
    """x: [tokens, hidden] -> [tokens, hidden], causal."""
    tokens, dim = x.shape[0], head_dim(config)
    q = (x @ weights[layer + "q_proj.weight"].T).reshape(tokens, -1, dim)
    k = (x @ weights[layer + "k_proj.weight"].T).reshape(tokens, -1, dim)
    v = (x @ weights[layer + "v_proj.weight"].T).reshape(tokens, -1, dim)
    if config["model_type"] == "qwen3":
        q = rms_norm(q, weights[layer + "q_norm.weight"], config["rms_norm_eps"])
        k = rms_norm(k, weights[layer + "k_norm.weight"], config["rms_norm_eps"])
    frequencies = inverse_frequencies(config)
    q, k = rotate(q, frequencies), rotate(k, frequencies)
    group = q.shape[1] // k.shape[1]  # q heads that share a kv head
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim)
    scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
    probabilities = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    mixed = np.einsum("hqk,khd->qhd", probabilities, v).reshape(tokens, -1)
    return mixed @ weights[layer + "o_proj.weight"].T


def mlp(weights, layer, x):
    gate = x @ weights[layer + "gate_proj.weight"].T
    up = x @ weights[layer + "up_proj.weight"].T
    return (gate / (1 + np.exp(-gate)) * up) @ weights[layer + "down_proj.weight"].T


def forward(config, weights, ids):
    """(logits [tokens, vocab], final hidden state [tokens, hidden])."""
    eps = config["rms_norm_eps"]
    x = weights["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        x = x + attention(config, weights, layer + "self_attn.", rms_norm(x, weights[layer + "input_layernorm.weight"], eps))
        x = x + mlp(weights, layer + "mlp.", rms_norm(x, weights[layer + "post_attention_layernorm.weight"], eps))
    x = rms_norm(x, weights["model.norm.weight"], eps)
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    return x @ weights[head].T, x


# ------------------------------------------------------------------------------------------------- all of it


def write_model(folder, config, prompt_tokens, files, rng):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    unrounded = random_weights(config, rng)
    encoded, weights = {}, {}
    for name, value in unrounded.items():
        dtype, data, weights[name] = encode(value, config["torch_dtype"])
        encoded[name] = (dtype, value.shape, data)
    write_weights(folder, encoded, files)

    expected = {}

    def expect(name, value, dtype="float32"):
        kind, data, _ = encode(value, dtype)
        expected[name] = (kind, value.shape, data)

    for i, tokens in enumerate(prompt_tokens):
        ids = rng.integers(0, config["vocab_size"], tokens)
        logits, hidden = forward(config, weights, ids)
        expect(f"prompt.{i}", ids, "int32")
        expect(f"logits.{i}", logits)
        expect(f"hidden.{i}", hidden[-1])
        if config["torch_dtype"] != "float32":
            expect(f"unrounded.{i}", forward(config, unrounded, ids)[0])
    write_safetensors(folder / "expected.safetensors", expected)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "tiny"
    for index, (name, (config, prompt_tokens, files)) in enumerate(MODELS.items()):
        write_model(root / name, config, prompt_tokens, files, np.random.default_rng([SEED, index]))
        print(f"{root / name}")


if __name__ == "__main__":
    main()
