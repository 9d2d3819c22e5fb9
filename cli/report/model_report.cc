// SPDX-License-Identifier: Apache-2.0
#include "cli/report/model_report.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/table.h"
#include "common/strings.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMemories[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 192, 256, 512, 1024};  // GiB
constexpr size_t kMemoriesShown = 4;

// Returns the smallest of kMemories that hold the weights, in bytes.
std::vector<uint64_t> MemoriesFor(const ModelReport& report) {
  std::vector<uint64_t> memories;
  for (const uint64_t memory : kMemories) {
    if (memory * kGiB > report.total.memory_bytes && memories.size() < kMemoriesShown)
      memories.push_back(memory * kGiB);
  }
  return memories;
}

// Returns, for instance, "1.10 B" or "5.54 M".
std::string Millions(uint64_t count) {
  const auto number = static_cast<double>(count);
  return count >= 1'000'000'000 ? absl::StrFormat("%.2f B", number / 1e9) : absl::StrFormat("%.2f M", number / 1e6);
}

std::string MiB(uint64_t bytes) { return absl::StrFormat("%.1f", static_cast<double>(bytes) / (1 << 20)); }

std::string DescribeConfig(const ModelConfig& c) {
  constexpr const char* kScalings[] = {"", ", linear scaling", ", Llama 3 scaling"};
  return absl::StrFormat(
      "%s: %d layers, hidden %d, heads %d (%d KV) of %d, FFN %d, vocabulary %d%s, context %d, RoPE theta %g%s\n",
      c.architecture_name, c.layers, c.hidden_size, c.heads, c.kv_heads, c.head_dim, c.ffn_size, c.vocab_size,
      c.tied_embeddings ? " (tied)" : "", c.max_positions, c.rope.theta, kScalings[static_cast<int>(c.rope.scaling)]);
}

std::string DescribeText(const ModelReport& report) {
  if (!report.tokenizer_status.ok()) {
    return absl::StrCat("cannot be served: ", report.tokenizer_status.message(), "\n");
  }
  const absl::Status& chat = report.chat_template_status;
  std::string text = absl::StrCat("tokenizer of ", report.tokenizer_tokens, " tokens, ",
                                  chat.ok()                ? "a chat template"
                                  : absl::IsNotFound(chat) ? "no chat template"
                                                           : absl::StrCat("no chat: ", chat.message()),
                                  "\n", report.end_tokens.empty() ? "no token ends an answer" : "answers end at ");
  for (size_t i = 0; i < report.end_tokens.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", report.end_tokens[i].text, " (", report.end_tokens[i].id, ")");
  }
  return text + "\n";
}

std::string DescribeMemory(const ModelReport& report) {
  std::vector<std::string> header = {"KV CACHE", "BYTES/TOKEN"};
  const std::vector<uint64_t> memories = MemoriesFor(report);
  for (const uint64_t memory : memories) header.push_back(absl::StrCat("IN ", memory / kGiB, " GiB"));
  Table table(header);
  for (const KvType dtype : kKvTypes) {
    std::vector<std::string> row = {std::string(Name(dtype)), absl::StrCat(KvBytesPerToken(*report.config, dtype))};
    for (const uint64_t memory : memories) row.push_back(absl::StrCat(TokensThatFit(report, dtype, memory)));
    table.AddRow(row);
  }
  return absl::StrCat("Tokens in the KV cache beside the weights\n", table.ToString());
}

Json ConfigJson(const ModelConfig& c) {
  constexpr const char* kScalings[] = {"none", "linear", "llama3"};
  return {{"architecture", c.architecture_name},
          {"layers", c.layers},
          {"hidden_size", c.hidden_size},
          {"heads", c.heads},
          {"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"ffn_size", c.ffn_size},
          {"vocab_size", c.vocab_size},
          {"max_positions", c.max_positions},
          {"tied_embeddings", c.tied_embeddings},
          {"rope_theta", c.rope.theta},
          {"rope_scaling", kScalings[static_cast<int>(c.rope.scaling)]}};
}

Json TextJson(const ModelReport& report) {
  if (!report.tokenizer_status.ok()) return {{"problem", std::string(FromAbsl(report.tokenizer_status.message()))}};
  const absl::Status& chat = report.chat_template_status;
  Json json = {{"tokens", report.tokenizer_tokens}, {"chat", chat.ok()}};
  json["end_tokens"] = Json::array();
  for (const EndToken& token : report.end_tokens)
    json["end_tokens"].push_back({{"id", token.id}, {"text", token.text}});
  if (!chat.ok()) json["chat_problem"] = std::string(FromAbsl(chat.message()));
  return json;
}

Json TypeJson(const TypeReport& type) {
  return {{"tensors", type.tensors},
          {"supported", type.supported},
          {"parameters", type.parameters},
          {"bytes", type.bytes},
          {"memory_bytes", type.memory_bytes}};
}

}  // namespace

std::string ToText(const std::string& path, const ModelReport& report) {
  std::string text = absl::StrCat(path, ", ", report.format, ", ", Millions(report.total.parameters), " parameters\n");
  absl::StrAppend(&text, report.config ? DescribeConfig(*report.config)
                                       : absl::StrCat("cannot be served: ", report.config_status.message(), "\n"));
  absl::StrAppend(&text, DescribeText(report));
  for (const TypeReport& type : report.types) {
    if (!type.supported)
      absl::StrAppend(&text, "cannot be served: tensors of type ", type.type, " are not supported\n");
  }
  Table tensors({"TYPE", "TENSORS", "PARAMETERS", "MiB", "IN MEMORY"});
  for (const TypeReport& type : report.types) {
    tensors.AddRow({type.type, absl::StrCat(type.tensors), absl::StrCat(type.parameters), MiB(type.bytes),
                    MiB(type.memory_bytes)});
  }
  tensors.AddRow({"all", absl::StrCat(report.total.tensors), absl::StrCat(report.total.parameters),
                  MiB(report.total.bytes), MiB(report.total.memory_bytes)});
  absl::StrAppend(&text, "\n", tensors.ToString());
  if (report.config) absl::StrAppend(&text, "\n", DescribeMemory(report));
  return text;
}

std::string ToJson(const std::string& path, const ModelReport& report) {
  Json json = {{"tensors", report.total.tensors},
               {"parameters", report.total.parameters},
               {"bytes", report.total.bytes},
               {"memory_bytes", report.total.memory_bytes}};
  json["path"] = path;
  json["format"] = report.format;
  json["config"] = report.config ? ConfigJson(*report.config) : Json();
  if (!report.config) json["problem"] = std::string(FromAbsl(report.config_status.message()));
  json["tokenizer"] = TextJson(report);
  for (const TypeReport& type : report.types) json["types"][type.type] = TypeJson(type);
  if (report.config) {
    for (const KvType dtype : kKvTypes) {
      json["kv_bytes_per_token"][std::string(Name(dtype))] = KvBytesPerToken(*report.config, dtype);
    }
    for (const uint64_t memory : MemoriesFor(report)) {
      Json fits = {{"memory_bytes", memory}};
      for (const KvType dtype : kKvTypes) {
        fits["tokens"][std::string(Name(dtype))] = TokensThatFit(report, dtype, memory);
      }
      json["kv_cache"].push_back(fits);
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
