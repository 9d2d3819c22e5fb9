// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace baton::testing {

struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};

// A file of `header`, whatever it says, and `body`.
inline std::string SafetensorsFile(const std::string& header, const std::string& body) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + body;
}

inline std::string SafetensorsFile(const std::vector<RawTensor>& tensors) {
  std::string header = "{";
  std::string body;
  for (const RawTensor& tensor : tensors) {
    if (header.size() > 1) header += ",";
    header += "\"" + tensor.name + R"(":{"dtype":")" + tensor.dtype + R"(","shape":[)";
    for (size_t i = 0; i < tensor.shape.size(); ++i) header += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
    header += R"(],"data_offsets":[)" + std::to_string(body.size()) + ",";
    body += tensor.data;
    header += std::to_string(body.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return SafetensorsFile(header, body);
}

}  // namespace baton::testing
