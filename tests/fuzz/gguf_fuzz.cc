// SPDX-License-Identifier: Apache-2.0
// GGUF files, and what is made of them.
#include <string>
#include <utility>

#include "engine/formats/gguf.h"
#include "engine/formats/gguf_convert.h"
#include "engine/model/config.h"
#include "fuzz_input.h"
#include "text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  auto file = ParseGguf(std::as_bytes(std::span(data, size)), "m");
  fuzz::CheckRefusal(file.status());
  if (!file.ok()) return 0;
  fuzz::ReadAll(file->tensors);
  const GgufModel model = {"m", {}, std::move(file->metadata), std::move(file->tensors)};
  const auto config = GgufConfigJson(model);
  fuzz::CheckRefusal(config.status());
  if (config.ok()) fuzz::CheckRefusal(ParseModelConfig(*config, "m").status());
  fuzz::Check(GgufTensors(model).size() <= model.tensors.size(), "no tensor comes out of nothing");
  const auto texts = GgufTextAssets(model);
  fuzz::CheckRefusal(texts.status());
  if (texts.ok()) {
    fuzz::CheckRefusal(Tokenizer::Create(texts->at("tokenizer.json"), texts->at("tokenizer_config.json")).status());
  }
  return 0;
}
