// SPDX-License-Identifier: Apache-2.0
// SentencePiece itself beside Baton, with models that it trains on the text: the same ids, how fast.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "engine/formats/gguf_convert.h"
#include "sentencepiece_peer.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

using Json = nlohmann::json;

void ExitUnless(bool condition, const std::string& what) {
  if (condition) return;
  std::cerr << what << std::endl;
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

const std::string& Text() {
  static const auto* const kText =
      new std::string(testing::ReadFile(testing::SourceFolder() / "tests/golden/demo/heldout.txt"));
  return *kText;
}

std::vector<std::string> Lines() {
  std::vector<std::string> lines;
  std::istringstream text(Text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::unique_ptr<Tokenizer> TokenizerOf(const SentencePiecePeer& model, const std::string& type) {
  testing::GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "llama").Strings("tokenizer.ggml.tokens", model.pieces());
  builder.Float32s("tokenizer.ggml.scores", model.scores()).Int32s("tokenizer.ggml.token_type", model.types());
  const std::string bytes = builder.File("");
  const auto file = ParseGguf(std::as_bytes(std::span(bytes)), "model");
  Json json = Json::parse(GgufTextAssets({"model", {}, file->metadata, {}})->at("tokenizer.json"));
  if (type == "unigram") {
    Json vocab = Json::array();
    for (size_t id = 0; id < model.pieces().size(); ++id) vocab.push_back({model.pieces()[id], model.scores()[id]});
    json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", vocab}};
  }
  return *Tokenizer::Create(json.dump(), "");
}

struct Pair {
  std::unique_ptr<SentencePiecePeer> theirs;
  std::unique_ptr<Tokenizer> ours;
};

Pair MakePair(const std::string& type) {
  Pair pair{.theirs = SentencePiecePeer::Train(type, Lines()), .ours = nullptr};
  ExitUnless(pair.theirs != nullptr, "SentencePiece does not train");
  pair.ours = TokenizerOf(*pair.theirs, type);
  ExitUnless(*pair.ours->Encode(Text(), false) == pair.theirs->Encode(Text()), "not the same ids");
  return pair;
}

void BM_SentencePiece(benchmark::State& state, const std::string& type) {
  const Pair pair = MakePair(type);
  for (auto _ : state) benchmark::DoNotOptimize(pair.theirs->Encode(Text()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * Text().size()));
}

void BM_Baton(benchmark::State& state, const std::string& type) {
  const Pair pair = MakePair(type);
  for (auto _ : state) benchmark::DoNotOptimize(pair.ours->Encode(Text(), false));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * Text().size()));
}

BENCHMARK_CAPTURE(BM_SentencePiece, bpe, std::string("bpe"));
BENCHMARK_CAPTURE(BM_Baton, bpe, std::string("bpe"));
BENCHMARK_CAPTURE(BM_SentencePiece, unigram, std::string("unigram"));
BENCHMARK_CAPTURE(BM_Baton, unigram, std::string("unigram"));

}  // namespace
}  // namespace baton
