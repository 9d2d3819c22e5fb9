// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/formats/gguf_pre_tokenizers.h"
#include "engine/formats/model_folder.h"
#include "engine/formats/rope_factors.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "tests/tiny_models.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::GgufBuilder;
using testing::kInvalid;
using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;

// Opens the built file with `data_bytes` zeros as tensor data.
absl::StatusOr<GgufModel> Open(const GgufBuilder& builder, size_t data_bytes = 0) {
  const testing::TempFolder folder;
  folder.Write("m.gguf", builder.File(std::string(data_bytes, '\0')));
  absl::StatusOr<GgufModel> model = OpenGgufModel(folder.path() / "m.gguf");
  if (model.ok()) model->origin = "m.gguf";
  return model;
}

// The metadata that every architecture needs.
GgufBuilder Sizes(const std::string& architecture) {
  GgufBuilder builder;
  builder.String("general.architecture", architecture);
  for (const auto& [key, value] : {std::pair("embedding_length", 64),
                                   {"block_count", 1},
                                   {"feed_forward_length", 96},
                                   {"context_length", 512},
                                   {"attention.head_count", 4},
                                   {"attention.head_count_kv", 2}}) {
    builder.Uint32(architecture + "." + key, value);
  }
  builder.Float32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  return builder;
}

absl::StatusOr<Json> Config(GgufBuilder& builder) {
  builder.Tensor("token_embd.weight", {64, 10}, 1, 0);
  const absl::StatusOr<GgufModel> model = Open(builder, 1280);
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::string> text = GgufConfigJson(*model);
  if (!text.ok()) return text.status();
  return Json::parse(*text);
}

TEST(GgufConfigJson, HasTheFieldsOfAHuggingFaceConfig) {
  GgufBuilder builder = Sizes("qwen3");
  builder.Uint32("qwen3.attention.key_length", 32).Float32("qwen3.rope.freq_base", 1e6f);
  ASSERT_OK_AND_ASSIGN(const Json config, Config(builder));
  EXPECT_EQ(config["architectures"], Json({"Qwen3ForCausalLM"}));
  EXPECT_EQ(config["hidden_size"], 64);
  EXPECT_EQ(config["num_hidden_layers"], 1);
  EXPECT_EQ(config["num_attention_heads"], 4);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["head_dim"], 32);
  EXPECT_EQ(config["intermediate_size"], 96);
  EXPECT_EQ(config["vocab_size"], 10);
  EXPECT_EQ(config["max_position_embeddings"], 512);
  EXPECT_EQ(config["rope_theta"], 1e6);
  EXPECT_EQ(config["rms_norm_eps"].get<float>(), 1e-5f);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["torch_dtype"], "float16");
  EXPECT_FALSE(config.contains("rope_scaling"));
}

TEST(GgufConfigJson, ReadsLinearScaling) {
  GgufBuilder builder = Sizes("llama");
  builder.String("llama.rope.scaling.type", "linear").Float32("llama.rope.scaling.factor", 4);
  ASSERT_OK_AND_ASSIGN(const Json config, Config(builder));
  EXPECT_EQ(config["rope_scaling"], (Json{{"rope_type", "linear"}, {"factor", 4.0}}));
}

TEST(GgufConfigJson, RefusesUnsupportedFeatures) {
  const auto with = [](auto change) {
    GgufBuilder builder = Sizes("llama");
    change(builder);
    return Config(builder).status();
  };
  EXPECT_TRUE(Fails(Config(GgufBuilder().String("general.architecture", "gemma3")), kUnimplemented,
                    "m.gguf: general.architecture: unknown architecture \"gemma3\", expected one of llama, qwen3"));
  EXPECT_TRUE(Fails(Config(GgufBuilder().Uint32("general.architecture", 3)), kInvalid, "expected a string"));
  GgufBuilder empty;
  EXPECT_TRUE(Fails(Config(empty), kInvalid, "m.gguf: general.architecture: expected a value"));
  EXPECT_TRUE(Fails(Config(GgufBuilder().String("general.architecture", "llama")), kInvalid,
                    "m.gguf: llama.embedding_length: expected a value"));
  EXPECT_TRUE(Fails(with([](auto& b) { b.Uint32("llama.expert_count", 8); }), kUnimplemented,
                    "llama.expert_count: mixtures of experts"));
  EXPECT_TRUE(Fails(with([](auto& b) { b.Uint32("llama.rope.dimension_count", 8); }), kUnimplemented,
                    "llama.rope.dimension_count: expected the size of a head, 16, got 8"));
  EXPECT_TRUE(Fails(with([](auto& b) { b.String("llama.rope.scaling.type", "yarn"); }), kUnimplemented,
                    "llama.rope.scaling.type: unknown scaling \"yarn\""));
  EXPECT_TRUE(Fails(with([](auto& b) { b.Float32("llama.logit_scale", 2); }), kUnimplemented, "llama.logit_scale"));
  EXPECT_TRUE(Fails(with([](auto& b) { b.Uint32("llama.attention.sliding_window", 4096); }), kUnimplemented,
                    "llama.attention.sliding_window: is not supported"));
  EXPECT_TRUE(Fails(with([](auto& b) { b.Bool("llama.attention.causal", false); }), kUnimplemented, "causal"));
}

// The config.json of a model whose rope_freqs.weight is `factors`.
absl::StatusOr<Json> ConfigWithFactors(const std::vector<float>& factors) {
  GgufBuilder builder = Sizes("llama");
  builder.Float32("llama.rope.freq_base", 500000).Uint32("llama.attention.key_length", 64);
  builder.Tensor("token_embd.weight", {64, 2}, 1, 0).Tensor("rope_freqs.weight", {factors.size()}, 0, 256);
  const testing::TempFolder folder;
  std::string data(256, '\0');
  data.append(reinterpret_cast<const char*>(factors.data()), factors.size() * sizeof(float));
  folder.Write("m.gguf", builder.File(data));
  const absl::StatusOr<ModelText> config = LoadConfigJson(folder.path() / "m.gguf");
  if (!config.ok()) return config.status();
  return Json::parse(config->text);
}

TEST(GgufConfigJson, RecognizesTheRopeFactorsOfLlama3) {
  std::vector<float> factors = Llama3RopeFactors({.factor = 32}, 500000, 64);
  EXPECT_EQ(factors.front(), 1);
  EXPECT_EQ(factors.back(), 32);
  for (float& factor : factors) factor *= 1 + 1e-6f;  // another converter may round differently
  factors.back() = 32;
  ASSERT_OK_AND_ASSIGN(const Json config, ConfigWithFactors(factors));
  EXPECT_EQ(config["rope_scaling"], (Json{{"rope_type", "llama3"},
                                          {"factor", 32.0},
                                          {"low_freq_factor", 1.0},
                                          {"high_freq_factor", 4.0},
                                          {"original_max_position_embeddings", 8192.0}}));
  factors[20] *= 1.01f;
  EXPECT_TRUE(Fails(ConfigWithFactors(factors), kUnimplemented,
                    "tensor rope_freqs.weight: expected the factors of Llama 3's scaling, [32] in F32"));
  factors.pop_back();
  EXPECT_TRUE(Fails(ConfigWithFactors(factors), kUnimplemented, "tensor rope_freqs.weight"));
}

TEST(GgufTensors, HaveHuggingFaceNames) {
  for (const bool llama : {true, false}) {
    GgufBuilder builder = Sizes(llama ? "llama" : "qwen3");
    uint64_t offset = 0;
    for (const char* name : {"token_embd.weight", "output.weight", "output_norm.weight", "blk.0.attn_q.weight",
                             "blk.11.attn_k.weight", "blk.0.ffn_norm.weight", "blk.0.attn_q_norm.weight",
                             "blk.0.attn_q.bias", "blk.x.attn_q.weight", "blk.7", "rope_freqs.weight"}) {
      builder.Tensor(name, {4}, 0, offset);
      offset += 32;
    }
    ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(builder, offset));
    std::vector<std::string> names;
    std::vector<int> interleaved;
    for (const Tensor& tensor : GgufTensors(model)) {
      names.push_back(tensor.name);
      if (tensor.interleaved_heads != 0) interleaved.push_back(tensor.interleaved_heads);
    }
    EXPECT_THAT(names,
                ElementsAre("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight",
                            "model.layers.0.self_attn.q_proj.weight", "model.layers.11.self_attn.k_proj.weight",
                            "model.layers.0.post_attention_layernorm.weight", "model.layers.0.self_attn.q_norm.weight",
                            "blk.0.attn_q.bias", "blk.x.attn_q.weight", "blk.7"));
    EXPECT_EQ(interleaved, llama ? std::vector<int>({4, 2}) : std::vector<int>());
  }
}

constexpr const char* kTexts[] = {
    "Hello, world!",
    "",
    "  two  spaces\n\n\tand\r\nlines ",
    "it's 12345 o'clock, WE'RE LATE'S",
    "naïve café – Übergrößenträger 東京タワー 🙂‍↔️ ﷽",
    "<|begin_of_text|><|user|>What is <|end|>?<|assistant|>",
    "<|begin_of_text|",
    "x += y << 3; // 0x1F 3.14159e-10",
};

void ExpectSameTokenizer(const Texts& texts, const std::filesystem::path& folder) {
  ASSERT_OK_AND_ASSIGN(const Texts expected_texts, LoadTextAssets(folder));
  ASSERT_OK_AND_ASSIGN(const auto expected, Tokenizer::Create(expected_texts.at("tokenizer.json"),
                                                              expected_texts.at("tokenizer_config.json")));
  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       Tokenizer::Create(texts.at("tokenizer.json"), texts.at("tokenizer_config.json")));
  std::vector<std::string> inputs(std::begin(kTexts), std::end(kTexts));
  inputs.push_back(testing::ReadFile(testing::SourceFolder() / "tests/golden/demo/heldout.txt"));
  inputs.push_back(testing::ReadFile(testing::SourceFolder() / "docs/architecture.md"));
  for (const std::string& text : inputs) {
    for (const bool add_special : {true, false}) {
      ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, add_special));
      ASSERT_OK_AND_ASSIGN(const auto expected_ids, expected->Encode(text, add_special));
      EXPECT_EQ(ids, expected_ids) << text.substr(0, 80);
    }
  }
  EXPECT_EQ(tokenizer->vocab_size(), expected->vocab_size());
  EXPECT_EQ(tokenizer->bos(), expected->bos());
  for (TokenId id = 0; id < expected->vocab_size(); ++id) {
    EXPECT_EQ(tokenizer->TokenBytes(id), expected->TokenBytes(id)) << id;
    EXPECT_EQ(tokenizer->IsSpecial(id), expected->IsSpecial(id)) << id;
  }
  const auto ends = [](const Texts& t) { return Json::parse(t.at("generation_config.json"))["eos_token_id"]; };
  std::vector<int> expected_ends = ends(expected_texts);
  std::sort(expected_ends.begin(), expected_ends.end());
  EXPECT_EQ(ends(texts), Json(expected_ends));
  EXPECT_EQ(Json::parse(texts.at("tokenizer_config.json"))["chat_template"],
            Json::parse(expected_texts.at("tokenizer_config.json"))["chat_template"]);
}

// The demo model's tokenizer as GGUF metadata.
GgufBuilder DemoTokenizer() {
  const std::filesystem::path folder = testing::DemoModel("demo-chat");
  const Json tokenizer = Json::parse(testing::ReadFile(folder / "tokenizer.json"));
  std::vector<std::string> tokens(4096);
  std::vector<int32_t> types(4096, 1);
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) tokens[id.get<int>()] = token;
  for (const Json& added : tokenizer["added_tokens"]) {
    tokens[added["id"].get<int>()] = added["content"];
    types[added["id"].get<int>()] = 3;
  }
  std::vector<std::string> merges;
  for (const Json& merge : tokenizer["model"]["merges"]) {
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "llama-bpe");
  builder.Strings("tokenizer.ggml.tokens", tokens).Int32s("tokenizer.ggml.token_type", types);
  builder.Strings("tokenizer.ggml.merges", merges);
  builder.Uint32("tokenizer.ggml.bos_token_id", 4090).Uint32("tokenizer.ggml.eos_token_id", 4095);
  const Json config = Json::parse(testing::ReadFile(folder / "tokenizer_config.json"));
  builder.String("tokenizer.chat_template", config["chat_template"]);
  return builder;
}

TEST(GgufTextAssets, TokenizeLikeTheHuggingFaceFolder) {
  ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(DemoTokenizer()));
  ASSERT_OK_AND_ASSIGN(const Texts texts, GgufTextAssets(model));
  ExpectSameTokenizer(texts, testing::DemoModel("demo-chat"));
}

TEST(GgufTextAssets, KeepsTheTemplateForTools) {
  ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(DemoTokenizer().String("tokenizer.chat_template.tool_use", "T")));
  ASSERT_OK_AND_ASSIGN(const Texts texts, GgufTextAssets(model));
  ASSERT_OK_AND_ASSIGN(const TokenizerConfig config, ParseTokenizerConfig(texts.at("tokenizer_config.json")));
  EXPECT_EQ(config.tool_template, "T");
  EXPECT_TRUE(config.chat_template->starts_with("{{ bos_token }}"));
}

// A byte-level tokenizer: tokens 0-255 are the bytes, 256 and above are `words`.
GgufBuilder TokenizerWithWords(const std::vector<std::string>& words, const std::vector<std::string>& merges) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(AlphabetLetter(static_cast<unsigned char>(byte)));
  tokens.insert(tokens.end(), words.begin(), words.end());
  GgufBuilder builder;
  builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "gpt-2");
  builder.Strings("tokenizer.ggml.tokens", tokens).Strings("tokenizer.ggml.merges", merges);
  return builder;
}

TEST(GgufTextAssets, MakesAnEndTokenSpecialEvenIfTheFileMarksItNormal) {
  GgufBuilder builder = TokenizerWithWords({"<E", "OT", "OT>", "<EOT>"}, {"< E", "O T", "OT >", "<E OT>"});
  ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(builder));
  ASSERT_OK_AND_ASSIGN(const Texts texts, GgufTextAssets(model));
  EXPECT_EQ(Json::parse(texts.at("generation_config.json"))["eos_token_id"], Json({259}));
  ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                       Tokenizer::Create(texts.at("tokenizer.json"), texts.at("tokenizer_config.json")));
  EXPECT_TRUE(tokenizer->IsSpecial(259));
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode("<EOT>OT", false));
  EXPECT_EQ(ids, (std::vector<TokenId>{259, 257}));
}

TEST(GgufTextAssets, ListSpecialTokensInTokenizerConfig) {
  GgufBuilder builder = TokenizerWithWords({"<u>", "<p>", "<s>", "<c>", "<m>"}, {});
  builder.Uint32("tokenizer.ggml.unknown_token_id", 256).Uint32("tokenizer.ggml.padding_token_id", 257);
  builder.Uint32("tokenizer.ggml.seperator_token_id", 258).Uint32("tokenizer.ggml.cls_token_id", 259);
  builder.Uint32("tokenizer.ggml.mask_token_id", 4294967295U);
  ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(builder));
  ASSERT_OK_AND_ASSIGN(const Texts texts, GgufTextAssets(model));
  const Json config = Json::parse(texts.at("tokenizer_config.json"));
  EXPECT_EQ(config["unk_token"], "<u>");
  EXPECT_EQ(config["pad_token"], "<p>");
  EXPECT_EQ(config["sep_token"], "<s>");
  EXPECT_EQ(config["cls_token"], "<c>");
  EXPECT_FALSE(config.contains("mask_token")) << "the id is outside the vocabulary";
}

TEST(GgufTextAssets, OfLlamaCppFilesTokenizeLikeTheFolder) {
  for (const char* name : {"demo-chat-F16.gguf", "demo-chat-BF16.gguf", "demo-chat-Q4_K_M.gguf"}) {
    const auto path = testing::SharedData(absl::StrCat("demo-model/gguf/", name));
    if (!path.ok()) GTEST_SKIP() << path.status().message();
    ASSERT_OK_AND_ASSIGN(const Texts texts, LoadTextAssets(*path));
    ExpectSameTokenizer(texts, testing::DemoModel("demo-chat"));
  }
}

// llama.cpp's test vectors: <file>.inp has texts separated by kMarker, <file>.out one line of expected ids per text.
TEST(GgufTextAssets, TokenizeLikeTheOriginalTokenizers) {
  for (const std::string name : {"gpt-2", "deepseek-coder", "llama-spm", "phi-3"}) {
    const auto path = testing::SharedData("vocabs/ggml-vocab-" + name + ".gguf");
    if (!path.ok()) GTEST_SKIP() << path.status().message();
    ASSERT_OK_AND_ASSIGN(const Texts texts, LoadTextAssets(*path));
    ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                         Tokenizer::Create(texts.at("tokenizer.json"), texts.at("tokenizer_config.json")));
    std::string inputs = testing::ReadFile(path->string() + ".inp");
    std::istringstream lines(testing::ReadFile(path->string() + ".out"));
    constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
    int cases = 0;
    for (size_t end = 0; (end = inputs.find(kMarker)) != std::string::npos; inputs.erase(0, end + kMarker.size())) {
      const std::string text = inputs.substr(0, end);
      std::string line;
      std::getline(lines, line);
      std::istringstream numbers(line);
      const std::vector<TokenId> expected{std::istream_iterator<TokenId>(numbers), {}};
      ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, false));
      EXPECT_EQ(ids, expected) << name << ": " << text;
      ++cases;
    }
    EXPECT_GT(cases, 30);
  }
}

TEST(GgufTextAssets, SupportEveryPreTokenizer) {
  const Json demo = Json::parse(testing::ReadFile(testing::DemoModel("demo-chat") / "tokenizer.json"));
  std::vector<std::string> tokens;
  for (const auto& [token, id] : demo["model"]["vocab"].items()) tokens.push_back(token);
  std::istringstream names(GgufPreTokenizerNames());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    GgufBuilder builder;
    builder.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", name);
    builder.Strings("tokenizer.ggml.tokens", tokens).Strings("tokenizer.ggml.merges", {});
    ASSERT_OK_AND_ASSIGN(const GgufModel model, Open(builder));
    ASSERT_OK_AND_ASSIGN(const Texts texts, GgufTextAssets(model));
    ASSERT_OK_AND_ASSIGN(const auto tokenizer,
                         Tokenizer::Create(texts.at("tokenizer.json"), texts.at("tokenizer_config.json")));
    EXPECT_OK(tokenizer->Encode("It's 1234 <words>, été 東京\n", true));
  }
}

TEST(GgufTextAssets, ErrorsNameTheKey) {
  const auto tokenizer = [](const std::string& kind, const std::string& pre, const std::vector<std::string>& tokens) {
    GgufBuilder builder;
    builder.String("tokenizer.ggml.model", kind).String("tokenizer.ggml.pre", pre);
    builder.Strings("tokenizer.ggml.tokens", tokens).Strings("tokenizer.ggml.merges", {});
    return builder;
  };
  const auto error = [](const GgufBuilder& builder) { return GgufTextAssets(*Open(builder)).status(); };
  EXPECT_TRUE(Fails(error(GgufBuilder()), kInvalid, "m.gguf: tokenizer.ggml.model: expected a value"));
  EXPECT_TRUE(Fails(
      error(tokenizer("bert", "default", {"a"})), kUnimplemented,
      "tokenizer.ggml.model: tokenizer \"bert\" is not supported, expected gpt2 (byte-level BPE), gemma4 or llama"));
  EXPECT_TRUE(Fails(error(tokenizer("llama", "default", {"a"})), kInvalid, "tokenizer.ggml.scores: expected a value"));
  EXPECT_TRUE(Fails(error(tokenizer("gpt2", "whitespace", {"a"})), kUnimplemented,
                    "tokenizer.ggml.pre: unknown pre-tokenizer \"whitespace\", expected one of default, gpt-2"));
  EXPECT_TRUE(Fails(error(tokenizer("gpt2", "gpt-2", {"a", "b", "a"})), kInvalid,
                    "tokenizer.ggml.tokens: expected each token once, got \"a\" again as token 2"));
  EXPECT_TRUE(Fails(error(tokenizer("gpt2", "gpt-2", {"\xFF"})), kInvalid, "expected all strings to be valid UTF-8"));
  const std::vector<std::string> many((1 << 20) + 1);
  EXPECT_TRUE(Fails(error(tokenizer("gpt2", "gpt-2", many)), kInvalid, "tokens: expected at most 1048576 tokens"));
  GgufBuilder wrong = tokenizer("gpt2", "gpt-2", {"a"});
  EXPECT_TRUE(Fails(error(wrong.Uint32("tokenizer.ggml.bos_token_id", 1)), kInvalid,
                    "tokenizer.ggml.bos_token_id: expected an integer from 0 to 0, got 1"));
  GgufBuilder types = tokenizer("gpt2", "gpt-2", {"a"});
  EXPECT_TRUE(Fails(error(types.Int32s("tokenizer.ggml.token_type", {1, 1})), kInvalid,
                    "tokenizer.ggml.token_type: expected one for each of 1 tokens, got 2"));
  GgufBuilder kind = tokenizer("gpt2", "gpt-2", {"a"});
  EXPECT_TRUE(Fails(error(kind.Int32s("tokenizer.ggml.token_type", {7})), kInvalid, "expected 1 to 6, got 7"));
}

// Writes file number `part` of a split model. The file's split.no is `claimed_part`.
void WritePart(const testing::TempFolder& folder, int part, int parts, const std::string& tensor, int claimed_part) {
  GgufBuilder builder;
  if (part == 0) builder.String("general.architecture", "llama");
  builder.Raw("split.no", 2, std::string({static_cast<char>(claimed_part), '\0'}));
  builder.Raw("split.count", 2, std::string({static_cast<char>(parts), '\0'}));
  builder.Tensor(tensor, {1}, 0, 0);
  folder.Write("m-0000" + std::to_string(part + 1) + "-of-0000" + std::to_string(parts) + ".gguf",
               builder.File("abcd"));
}

TEST(OpenGgufModel, OpensAllPartsOfASplitModel) {
  const testing::TempFolder folder;
  WritePart(folder, 0, 2, "token_embd.weight", 0);
  const std::filesystem::path first = folder.path() / "m-00001-of-00002.gguf";
  EXPECT_TRUE(Fails(OpenGgufModel(first), absl::StatusCode::kNotFound, "m-00002-of-00002.gguf: cannot be opened"));
  WritePart(folder, 1, 2, "output.weight", 1);
  ASSERT_OK_AND_ASSIGN(const GgufModel model, OpenGgufModel(first));
  ASSERT_EQ(model.tensors.size(), 2U);
  EXPECT_EQ(model.tensors[1].name, "output.weight");
  EXPECT_EQ(model.origin, first.string());

  EXPECT_TRUE(Fails(OpenGgufModel(folder.path() / "m-00002-of-00002.gguf"), kInvalid,
                    "split.no: expected the first of the 2 parts of a split model, got part 1 counted from 0"));
  std::filesystem::rename(first, folder.path() / "x.gguf");
  EXPECT_TRUE(Fails(OpenGgufModel(folder.path() / "x.gguf"), kInvalid,
                    "split.count: expected the first of 2 parts to be named ...-00001-of-00002.gguf"));
  WritePart(folder, 0, 2, "output.weight", 0);
  EXPECT_TRUE(Fails(OpenGgufModel(first), kInvalid, "tensor output.weight is in more than one part"));
  WritePart(folder, 1, 2, "output.weight", 0);
  EXPECT_TRUE(Fails(OpenGgufModel(first), kInvalid, "split.no: expected part 1 of 2 counted from 0, got 0 of 2"));
}

TEST(IsGgufPath, TellsFilesFromFolders) {
  const testing::TempFolder folder;
  folder.Write("model", "");
  EXPECT_TRUE(IsGgufPath(folder.path() / "model"));
  EXPECT_TRUE(IsGgufPath(folder.path() / "none.gguf"));
  EXPECT_FALSE(IsGgufPath(folder.path()));
  EXPECT_FALSE(IsGgufPath(folder.path() / "none"));
}

}  // namespace
}  // namespace baton
