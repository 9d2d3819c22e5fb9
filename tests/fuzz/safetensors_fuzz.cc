// SPDX-License-Identifier: Apache-2.0
// Safetensors files, their index, and generation_config.json.
#include <string>

#include "engine/formats/safetensors.h"
#include "fuzz_input.h"
#include "text/assets/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  const auto tensors = ParseSafetensors(std::as_bytes(std::span(data, size)), "m");
  fuzz::CheckRefusal(tensors.status());
  if (tensors.ok()) fuzz::ReadAll(*tensors);
  fuzz::CheckRefusal(ParseSafetensorsIndex(fuzz::Text(data, size), "i").status());
  fuzz::CheckRefusal(ParseGenerationConfig(fuzz::Text(data, size), "g").status());
  return 0;
}
