// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding speed of the demo model's tokenizer and of real vocabularies (BATON_SHARED), the worst cases of
// every pre-tokenizer, and the cost of rendering a chat template.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/steady_time.h"
#include "engine/formats/gguf_convert.h"
#include "engine/formats/gguf_pre_tokenizers.h"
#include "engine/formats/model_folder.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "text/chat/chat_template.h"
#include "text/chat/conversation.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

std::string ProjectFile(const std::string& name) { return testing::ReadFile(testing::SourceFolder() / name); }

template <typename T>
T ValueOrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

std::unique_ptr<Tokenizer> DemoTokenizer() {
  return ValueOrExit(Tokenizer::Create(ProjectFile("models/demo-chat/tokenizer.json"),
                                       ProjectFile("models/demo-chat/tokenizer_config.json")));
}

void Encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.Encode(text, true));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void BM_EncodeChats(benchmark::State& state) {
  Encode(state, *DemoTokenizer(), ProjectFile("tests/golden/demo/heldout.txt"));
}
void BM_EncodeSource(benchmark::State& state) {
  Encode(state, *DemoTokenizer(), ProjectFile("text/jinja/operators.cc"));
}
void BM_EncodeOneLetter1MB(benchmark::State& state) { Encode(state, *DemoTokenizer(), std::string(1 << 20, 'a')); }
void BM_EncodeSpaces1MB(benchmark::State& state) { Encode(state, *DemoTokenizer(), std::string(1 << 20, ' ')); }

void BM_Decode(benchmark::State& state) {
  const auto tokenizer = DemoTokenizer();
  const std::string text = ProjectFile("tests/golden/demo/heldout.txt");
  const std::vector<TokenId> ids = ValueOrExit(tokenizer->Encode(text, false));
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->Decode(ids, true));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void BM_DetokenizeOneToken(benchmark::State& state) {
  const auto tokenizer = DemoTokenizer();
  Detokenizer detokenizer(*tokenizer, true);
  TokenId id = 0;
  for (auto _ : state) benchmark::DoNotOptimize(detokenizer.Push(id = (id + 1) % 4000));
}

void BM_RenderChat(benchmark::State& state) {
  const TokenizerConfig config =
      ValueOrExit(ParseTokenizerConfig(ProjectFile("models/demo-chat/tokenizer_config.json")));
  const auto chat_template = ValueOrExit(ChatTemplate::Parse(config.chat_template.value_or("")));
  Conversation conversation;
  conversation.messages.assign(state.range(0), {.role = "user", .content = "Tell me a story about a fox named Pip."});
  const ChatTemplateInputs inputs = *TemplateInputs(conversation, {}, "");
  for (auto _ : state) benchmark::DoNotOptimize(chat_template->Render(inputs));
}

void BM_LoadTokenizer(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(DemoTokenizer());
}

// For each vocabulary that is there: chats, as for the demo model.
void RegisterVocabularies() {
  const auto folder = testing::SharedData("vocabs");
  if (!folder.ok()) return;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".gguf") continue;
    benchmark::RegisterBenchmark(("BM_EncodeChats/" + entry.path().stem().string()).c_str(),
                                 [path = entry.path()](benchmark::State& state) {
                                   const auto texts = ValueOrExit(LoadTextAssets(path));
                                   Encode(state, *ValueOrExit(Tokenizer::Create(texts.at("tokenizer.json"), "")),
                                          ProjectFile("tests/golden/demo/heldout.txt"));
                                 });
  }
}

std::unique_ptr<Tokenizer> TokenizerOfBytes(const std::string& pre) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(AlphabetLetter(static_cast<unsigned char>(byte)));
  testing::GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", pre);
  builder.Strings("tokenizer.ggml.tokens", tokens).Strings("tokenizer.ggml.merges", {});
  const std::string bytes = builder.File("");
  const auto file = ParseGguf(std::as_bytes(std::span(bytes)), pre);
  return ValueOrExit(
      Tokenizer::Create(ValueOrExit(GgufTextAssets({pre, {}, file->metadata, {}})).at("tokenizer.json"), ""));
}

// A megabyte of one thing after the other, with a letter at its end: the time of the slowest.
void BM_SlowestMegabyte(benchmark::State& state, const std::string& pre) {
  const auto tokenizer = TokenizerOfBytes(pre);
  for (auto _ : state) {
    double slowest = 0;
    for (const char* unit : {"a", "A", "aB", "1", "½", " ", "\n", "\r\n", " \n", "'", "!", "_", "a ", "! ", "中", "é",
                             "e\u0301", "\u0301", "\u3000"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      const SteadyTime start = SteadyTime::Now();
      benchmark::DoNotOptimize(ValueOrExit(tokenizer->Encode(text + "x", false)));
      slowest = std::max(slowest, absl::ToDoubleSeconds(SteadyTime::Now() - start));
    }
    state.SetIterationTime(slowest);
  }
}

// For each pre-tokenizer of GGUF files.
void RegisterPreTokenizers() {
  for (const GgufPreTokenizer& pre : GgufPreTokenizers()) {
    const std::string name(pre.names.front());
    benchmark::RegisterBenchmark(("BM_SlowestMegabyte/" + name).c_str(), BM_SlowestMegabyte, name)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

BENCHMARK(BM_EncodeChats);
BENCHMARK(BM_EncodeSource);
BENCHMARK(BM_EncodeOneLetter1MB);
BENCHMARK(BM_EncodeSpaces1MB);
BENCHMARK(BM_Decode);
BENCHMARK(BM_DetokenizeOneToken);
BENCHMARK(BM_RenderChat)->Arg(2)->Arg(100);
BENCHMARK(BM_LoadTokenizer);

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::RegisterVocabularies();
  baton::RegisterPreTokenizers();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
