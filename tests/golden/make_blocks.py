#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks of quantized values, and what each holds by the definition of its type in float64.

An implementation of its own, written from the layouts of ggml's block types, a value at a time. Writes blocks/:

  TYPE.blocks.bin  blocks one after the other, as a GGUF file packs them
  TYPE.f32.bin     the values that they hold, F32: each is the float64 value, which is exact, rounded once

Codes are random. Scales are random halves of both signs, with the smallest, the largest and zero among them. Same seed,
same bytes. Usage: make_blocks.py [output folder]; make_blocks.py --check FOLDER decodes the blocks of another folder
with the same files, and compares.
"""

import sys
from pathlib import Path

import numpy as np

SEED = 20240612
SMALL_BLOCKS = 24
LARGE_BLOCKS = 8
# A subnormal, the smallest normal, the largest, zero, and ordinary ones.
HALVES = np.array([2.0**-24, 2.0**-14, 65504.0, 0.0, -0.01171875, 0.5], np.float16)


def half(data, at):
    return float(np.frombuffer(data, np.float16, 1, at)[0])


def nibble(data, at, upper):
    return data[at] >> 4 if upper else data[at] & 15


def bit(data, at, number):
    return data[at + number // 8] >> number % 8 & 1


def signed(byte):
    return byte - 256 if byte > 127 else byte


def q4_0(block):
    """Scale; 16 bytes: the low nibbles are values 0 to 15, the high ones 16 to 31."""
    return [half(block, 0) * (nibble(block, 2 + i % 16, i >= 16) - 8) for i in range(32)]


def q4_1(block):
    """Scale, minimum; nibbles as in Q4_0."""
    return [half(block, 0) * nibble(block, 4 + i % 16, i >= 16) + half(block, 2) for i in range(32)]


def q5_0(block):
    """Scale; 32 fifth bits; nibbles as in Q4_0."""
    return [half(block, 0) * (nibble(block, 6 + i % 16, i >= 16) + 16 * bit(block, 2, i) - 16) for i in range(32)]


def q5_1(block):
    """Scale, minimum; 32 fifth bits; nibbles as in Q4_0."""
    return [half(block, 0) * (nibble(block, 8 + i % 16, i >= 16) + 16 * bit(block, 4, i)) + half(block, 2)
            for i in range(32)]


def q8_0(block):
    """Scale; 32 signed bytes."""
    return [half(block, 0) * signed(block[2 + i]) for i in range(32)]


def k_scale_and_minimum(block, group):
    """Of 8 groups, 6 bits each, in the 12 bytes from byte 4: the first 4 groups have theirs in the lower 6 bits of
    bytes 0-3 and 4-7; of the others, bytes 8-11 hold the lower 4 bits and those first bytes the upper 2."""
    packed = block[4:16]
    if group < 4:
        return packed[group] & 63, packed[group + 4] & 63
    low = packed[group + 4]
    return (low & 15) | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4


def k_value(block, i, code):
    scale, minimum = k_scale_and_minimum(block, i // 32)
    return half(block, 0) * scale * code - half(block, 2) * minimum


def k_nibble(block, at, i):
    """64 values share 32 bytes: the low nibbles are the first 32 values."""
    return nibble(block, at + i // 64 * 32 + i % 32, i % 64 >= 32)


def q4_k(block):
    """Scale of scales, scale of minimums, 12 bytes of those, nibbles."""
    return [k_value(block, i, k_nibble(block, 16, i)) for i in range(256)]


def q5_k(block):
    """As Q4_K, with 32 bytes before the nibbles: bit g of byte b is the fifth bit of value b of group g."""
    return [k_value(block, i, k_nibble(block, 48, i) + 16 * (block[16 + i % 32] >> i // 32 & 1)) for i in range(256)]


def q6_k(block):
    """Low nibbles, upper 2 bits, 16 signed scales, scale of scales. 128 values share 64 bytes of nibbles, and 32 bytes
    of upper bits, in which each byte serves 4 values that are 32 apart."""
    values = []
    for i in range(256):
        part, place = i // 128, i % 128
        low = nibble(block, part * 64 + place % 64, place >= 64)
        upper = block[128 + part * 32 + place % 32] >> place // 32 * 2 & 3
        values.append(half(block, 208) * signed(block[192 + i // 16]) * (low + 16 * upper - 32))
    return values


def f16(block):
    return [half(block, 0)]


def bf16(block):
    return [float(np.frombuffer(b"\0\0" + block, np.float32, 1)[0])]


# name -> (bytes of a block, offsets of its halves, decoder)
TYPES = {
    "Q4_0": (18, [0], q4_0),
    "Q4_1": (20, [0, 2], q4_1),
    "Q5_0": (22, [0], q5_0),
    "Q5_1": (24, [0, 2], q5_1),
    "Q8_0": (34, [0], q8_0),
    "Q4_K": (144, [0, 2], q4_k),
    "Q5_K": (176, [0, 2], q5_k),
    "Q6_K": (210, [208], q6_k),
    "F16": (2, [0], f16),
    "BF16": (2, [], bf16),
}


def decode(name, blocks):
    size, _, values_of = TYPES[name]
    values = [value for at in range(0, len(blocks), size) for value in values_of(blocks[at:at + size])]
    return np.array(values, np.float64).astype(np.float32).tobytes()


def random_blocks(name, rng):
    size, halves, _ = TYPES[name]
    count = LARGE_BLOCKS if size > 64 else SMALL_BLOCKS
    blocks = bytearray()
    for i in range(count):
        block = bytearray(rng.integers(0, 256, size, np.uint8).tobytes())
        for at in halves:
            # Each special one once, in another order for every scale; then random ones that are finite.
            special = HALVES[(i + at) % len(HALVES)]
            scale = special if i < len(HALVES) else np.float16(rng.normal() * 2.0**rng.integers(-12, 4))
            block[at:at + 2] = scale.tobytes()
        if name == "BF16" and (block[1] & 127) == 127 and block[0] & 128:
            block[0] &= 127  # neither infinite nor no number
        blocks += block
    return bytes(blocks)


def check(folder):
    differ = [name for name in TYPES
              if decode(name, (folder / f"{name}.blocks.bin").read_bytes()) != (folder / f"{name}.f32.bin").read_bytes()]
    print(f"{folder}: {len(TYPES)} types, different: {', '.join(differ) or 'none'}")
    return 1 if differ else 0


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(Path(sys.argv[2]))
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "blocks"
    root.mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(TYPES):
        blocks = random_blocks(name, np.random.default_rng([SEED, index]))
        (root / f"{name}.blocks.bin").write_bytes(blocks)
        (root / f"{name}.f32.bin").write_bytes(decode(name, blocks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
