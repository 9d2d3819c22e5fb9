#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fill MODEL_CARD.md from out/eval.json and out/train.json."""
import json
e = json.load(open("out/eval.json")); t = json.load(open("out/train.json"))
pc = lambda x: f"{100 * x:.0f} %"
rec = lambda n: ", ".join(f"{L}: {pc(e[f'recall_{n}_{L}']['exact'])}" for L in (100, 200, 500, 1000, 1800))
st = lambda n: ", ".join(f"{k.replace('_', ' ')} {pc(v)}" for k, v in e[f"story_{n}"].items())
card = f"""# demo-chat and demo-draft

Two very small language models made for Baton. demo-chat lets a first run stream sensible text without any download.
demo-draft, smaller and with the same tokenizer, serves Baton's tests (`tests/golden/demo-draft`) and is not installed.

Licence: Apache-2.0, as Baton's. Text, tokenizer, training code and weights were all made for this project; no outside
corpus, text or weights were used.

| | demo-chat | demo-draft |
|---|---|---|
| architecture | Llama, 6 layers, hidden 256, 4 heads x 64, 2 KV heads, FFN 704 | Llama, 3 layers, hidden 128, 2 heads x 64, 2 KV heads, FFN 352 |
| parameters (tied embedding) | {t['chat']['params']:,} | {t['draft']['params']:,} |
| vocabulary / positions / RoPE | 4096 / 2048 / theta 10000 | the same tokenizer |
| training tokens, optimizer steps | {t['chat']['tokens']:,}, {t['chat']['steps']:,} | {t['draft']['tokens']:,}, {t['draft']['steps']:,} |
| perplexity, held-out, per document | {e['ppl_chat']['per_document']:.3f} | {e['ppl_draft']['per_document']:.3f} |
| perplexity, answers only | {e['ppl_chat']['answers_only']:.3f} | {e['ppl_draft']['answers_only']:.3f} |
| perplexity, windows of 512 | {e['ppl_chat']['windows_512']:.3f} | {e['ppl_draft']['windows_512']:.3f} |
| JSON extraction, exact / valid JSON | {pc(e['json_chat']['exact'])} / {pc(e['json_chat']['valid'])} | {pc(e['json_draft']['exact'])} / {pc(e['json_draft']['valid'])} |
| recall, exact, by prompt tokens | {rec('chat')} | {rec('draft')} |
| stories | {st('chat')} | {st('draft')} |

Answers of demo-chat on held-out documents: questions about serving {pc(e['qa_chat']['correct'])} word for word one of the right
answers, counting/copying/lists {pc(e['misc_chat']['correct'])}, small talk {pc(e['about_chat']['correct'])}.
The draft's greedy token equals demo-chat's on {pc(e['draft_agreement_on_chat_output']['all'])} of the tokens that demo-chat writes; with 4 draft
tokens per step that is {e['tokens_per_verify_step']['4']} tokens per verification (8: {e['tokens_per_verify_step']['8']}).

Perplexity: {e['ppl_method']}

How they were made: `models/training/run.sh` runs all steps. gen_corpus.py and train_bpe.py give the same corpus and the
same tokenizer again, byte for byte. Training ends by wall time, so its weights differ from run to run.

Data: gen_corpus.py writes 14 MB (3.7 M tokens) of chat-form text: stories from a template grammar (45 %),
questions and answers about LLM serving from facts.py (19 %), JSON extraction (12 %), recall of facts hidden in
filler text up to about 1800 tokens (13 %), counting, copying and lists (5 %), small talk and multi-turn chats (6 %).
A document is held out when the hash of its choices says so, so no held-out combination was trained on.

Prompt format: <|begin_of_text|>, optional <|system|>...<|end|>, then <|user|>...<|end|><|assistant|>; the answer ends
with <|end|>. No newlines around the markers. Plain text ends with <|end_of_text|>.

Training: train.py on two CPU cores, Muon for the matrices and Adam for the embedding, packed rows of 256, then 512,
then 2048 tokens; prompts weigh 0.2 in the loss, answers 1, recall answers 2; a few rows are random token sequences that repeat.
The initial weights contain a planted copy circuit (plant.py): a few million tokens are too few for gradient
descent to find induction heads by itself. Some residual dimensions hold fixed random token codes for this purpose,
so the embedding is not a "natural" one; the computation is plain Llama.

Limits: knows only this small world. It cannot hold a real conversation, reason, or answer questions outside the
corpus, and then gives a refusal or confident nonsense. Answers about serving are memorised sentences, not advice.
Not for any use but demonstration and testing.
"""
open("out/MODEL_CARD.md", "w").write(card)
