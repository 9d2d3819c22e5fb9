#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sentencepiece.json: two small models that SentencePiece trains, and the ids that it gives for some texts.

Needs Debian's python3-sentencepiece. Run from this folder; the result depends on the version of SentencePiece.
"""
import io
import json
import pathlib
import random

import sentencepiece

SEED = 5
ALPHABETS = ["abcdefghijklmnop  ", "the and of to in ", "éüñçøß", "абвгд ", "中国語日本", "한글", "😀👨‍👩‍👧🎉", "0123456789", ".,!?'\"()-", "\n\t", "  "]


def texts():
    rng = random.Random(SEED)
    yield from ["", " ", "  ", "Hello world", " Hello  world ", "\n", "a\n\nb", "naïve café", "日本語", "👨‍👩‍👧", "\u2581", "a\u2581b",
                "e\u0301", "\u200d", "x" * 100, " " * 40, "<0xE6>", "tab\tand\r\nline"]
    words = pathlib.Path("demo/heldout.txt").read_text().split()
    for _ in range(60):
        yield " ".join(rng.choices(words, k=rng.randint(1, 30)))
    for _ in range(120):
        yield "".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randint(1, 40)))


def train(model_type):
    corpus = pathlib.Path("demo/heldout.txt").read_text().splitlines()
    rng = random.Random(SEED)
    corpus += ["".join(rng.choice(rng.choice(ALPHABETS[:7])) for _ in range(60)) for _ in range(200)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, model_type=model_type, vocab_size=700, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.999, num_threads=1,
        minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def kind(model, i):  # GGUF's numbers
    if model.is_unknown(i):
        return 2
    if model.is_control(i):
        return 3
    return 6 if model.is_byte(i) else 1


def describe(model):
    count = model.vocab_size()
    return {
        "pieces": [model.id_to_piece(i) for i in range(count)],
        "scores": [model.get_score(i) for i in range(count)],
        "types": [kind(model, i) for i in range(count)],
        "ids": [model.encode(text) for text in texts()],
    }


result = {"texts": list(texts()), "bpe": describe(train("bpe")), "unigram": describe(train("unigram"))}
with open("sentencepiece.json", "w", encoding="utf-8") as out:
    json.dump(result, out, ensure_ascii=False, separators=(",", ":"))
    out.write("\n")
