// Encoding and decoding speed of the demo model's tokenizer, and the cost of rendering its chat template.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "tests/files.h"

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

void Encode(benchmark::State& state, const std::string& text) {
  const auto tokenizer = DemoTokenizer();
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->Encode(text, true));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void BM_EncodeChats(benchmark::State& state) { Encode(state, ProjectFile("tests/golden/demo/heldout.txt")); }
void BM_EncodeSource(benchmark::State& state) { Encode(state, ProjectFile("engine/tokenizer/jinja/operators.cc")); }
void BM_EncodeOneLetter1MB(benchmark::State& state) { Encode(state, std::string(1 << 20, 'a')); }
void BM_EncodeSpaces1MB(benchmark::State& state) { Encode(state, std::string(1 << 20, ' ')); }

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
  const std::vector<ChatTurn> turns(state.range(0), {"user", "Tell me a story about a fox named Pip."});
  for (auto _ : state) benchmark::DoNotOptimize(chat_template->Render(turns, "<s>", "</s>", true));
}

void BM_LoadTokenizer(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(DemoTokenizer());
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
