// SPDX-License-Identifier: Apache-2.0
// Writes what the fuzz targets start from, small valid inputs of each kind: seeds FOLDER makes FOLDER/gguf/0 and so on.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "engine/formats/gguf.h"
#include "engine/formats/gguf_convert.h"
#include "engine/kv/layout.h"
#include "kvtransfer/wire/codec.h"
#include "tests/gguf_builder.h"
#include "tests/safetensors_writer.h"
#include "tests/tiny_models.h"
#include "text/tokenizer/byte_alphabet.h"

namespace baton {
namespace {

// A model of one layer, almost without tensors, and with a vocabulary of bytes.
testing::GgufBuilder SmallModel(const std::string& architecture, const std::string& pre) {
  testing::GgufBuilder builder;
  builder.String("general.architecture", architecture);
  for (const auto& [key, value] : {std::pair("embedding_length", 64),
                                   {"block_count", 1},
                                   {"feed_forward_length", 96},
                                   {"context_length", 64},
                                   {"attention.head_count", 4},
                                   {"attention.head_count_kv", 2},
                                   {"attention.key_length", 16}}) {
    builder.Uint32(architecture + "." + key, value);
  }
  builder.Float32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  builder.Float32(architecture + ".rope.freq_base", 500000);
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(AlphabetLetter(static_cast<unsigned char>(byte)));
  tokens.insert(tokens.end(), {"it", "Ġt", "<s>", "<|end|>"});
  types.assign(tokens.size() - 2, 1);
  types.insert(types.end(), {4, 3});
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", pre);
  builder.Strings("tokenizer.ggml.tokens", tokens).Int32s("tokenizer.ggml.token_type", types);
  builder.Strings("tokenizer.ggml.merges", {"i t", "Ġ t"}).Uint32("tokenizer.ggml.eos_token_id", 259);
  builder.Tensor("token_embd.weight", {64, 4}, 8, 0).Tensor("blk.0.attn_q.weight", {64, 1}, 2, 288);
  return builder;
}

std::vector<std::string> Ggufs() {
  return {
      SmallModel("llama", "llama-bpe").File(std::string(324, 'x')),
      SmallModel("qwen3", "qwen2").File(std::string(324, 'x')),
      testing::GgufBuilder(2).Uint32("general.alignment", 64).Tensor("a", {1}, 0, 64).File(std::string(68, 'x'), 64)};
}

std::vector<std::string> Tokenizers() {
  std::vector<std::string> inputs;
  for (const char* pre : {"llama-bpe", "qwen2", "gpt-2", "default"}) {
    const std::string bytes = SmallModel("llama", pre).File(std::string(324, 'x'));
    auto file = ParseGguf(std::as_bytes(std::span(bytes)), "seed");
    const auto texts = GgufTextAssets({"seed", {}, file->metadata, {}});
    inputs.push_back(texts->at("tokenizer.json") + '\0' + texts->at("tokenizer_config.json"));
  }
  // Of characters, with every step that there is.
  inputs.push_back(std::string(R"({"added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},)"
                               R"({"type":"Lowercase"},{"type":"Strip"},{"type":"Prepend","prepend":"_"},)"
                               R"({"type":"Replace","pattern":{"Regex":" +"},"content":"_"}]},)"
                               R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Metaspace",)"
                               R"("replacement":"_","prepend_scheme":"first"},{"type":"Digits"},)"
                               R"({"type":"Punctuation"},{"type":"Whitespace"}]},)"
                               R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},)"
                               R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
                               R"({"type":"Strip","content":" ","start":1,"stop":0}]},)"
                               R"("model":{"type":"BPE","byte_fallback":true,"unk_token":"<unk>","fuse_unk":true,)"
                               R"("vocab":{"<unk>":0,"<0xC3>":1,"_":2,"i":3,"t":4,"it":5,"_it":6},)"
                               R"("merges":[["i","t"],["_","it"]],"merge_ranks":[0,0]}})") +
                   '\0' + "it It\xC3\xA9 12");
  return inputs;
}

std::vector<std::string> SafetensorsFiles() {
  return {
      testing::SafetensorsFile({{"a", "F32", {2, 3}, std::string(24, 'a')}, {"b", "BF16", {4}, std::string(8, 'b')}}),
      testing::ReadFile(testing::TinyModel("llama_sharded") / "model.safetensors.index.json"),
      testing::ReadFile(testing::DemoModel("demo-chat") / "generation_config.json")};
}

std::vector<std::string> ChatTemplates() {
  return {
      "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor "
      "%}",
      "{%- if messages[0].role == 'system' -%}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif "
      "%}"
      "{% for m in rest if m.content is string %}{{ loop.index0 ~ m.content | trim | upper }}{% endfor %}",
      "{% macro f(a, b=2) %}{{ a * b }}{% endmacro %}{% set ns = namespace(n=0) %}{% for i in range(3) %}"
      "{% set ns.n = ns.n + i %}{% endfor %}{{ f(ns.n) }}{{ messages | tojson }}{{ raise_exception('x') }}",
      "{# comment #}{{ {'a': [1, 2.5, none]}['a'][-1] or 'b' if true and not false else 'c' }}{{ '%s'|format(1) }}"};
}

std::vector<std::string> Conversations() {
  return {R"([{"role":"user","content":"Hi \u00e9"}])",
          R"({"messages":[{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"1",)"
          R"("type":"function","function":{"name":"f","arguments":"{\"a\":[1,2.5,null,true]}"}}]},)"
          R"({"role":"tool","tool_call_id":"1","name":"f","content":"4"}],"tools":[{"type":"function",)"
          R"("function":{"name":"f","parameters":{"type":"object"}}}],"chat_template_kwargs":{"more":{"a":[1,"x"]}}})"};
}

std::vector<std::string> HandoffMessages() {
  using namespace handoff;
  constexpr AttemptKey kKey{.request = {0x0102030405060708, 9}, .attempt = 3};
  const KvLayout layout(3, {.kv_heads = 2, .head_dim = 64, .page_tokens = 16, .dtype = KvType::kBF16});
  const Hello hello{
      .worker_id = "w", .epoch = 77, .numerics_id = "n", .layout = layout.ToString(), .pages_total = 1000};
  std::vector<std::string> bytes = {Encode(hello), Encode(Welcome{"no", hello})};
  for (const Message& message : std::vector<Message>{
           Reserve{kKey, 33, {{1, 2}, {3}}}, Queued{kKey}, Granted{kKey, {PageId{7}, PageId{0}}, {0, 1}},
           Refused{kKey, Cause::kTooLarge, "why"}, CancelReserve{kKey}, Commit{kKey, 33, {128000}, 5},
           Committed{kKey, "revoked"}, Revoke{kKey}, Aborted{kKey, Cause::kInternal}}) {
    bytes.push_back(Encode(message));
  }
  return bytes;
}

void WriteSeeds(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < seeds.size(); ++i) std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds FOLDER" << std::endl;
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  baton::WriteSeeds(folder / "gguf", baton::Ggufs());
  baton::WriteSeeds(folder / "safetensors", baton::SafetensorsFiles());
  baton::WriteSeeds(folder / "tokenizer", baton::Tokenizers());
  baton::WriteSeeds(folder / "chat_template", baton::ChatTemplates());
  baton::WriteSeeds(folder / "conversation", baton::Conversations());
  baton::WriteSeeds(folder / "handoff", baton::HandoffMessages());
  return 0;
}
