// SPDX-License-Identifier: Apache-2.0
// Implements ModelFingerprint (checkpoint.h).
#include <algorithm>
#include <span>

#include "common/sha256.h"
#include "common/strings.h"
#include "engine/formats/checkpoint.h"

namespace baton {
namespace {

constexpr uint64_t kMaxHashedBytes = uint64_t{64} << 20;
constexpr uint64_t kBlockBytes = 4096;

// Hashes every `stride`-th block of `data` and the last kBlockBytes bytes.
void AddBlocks(Sha256& hash, std::span<const std::byte> data, uint64_t stride) {
  if (stride == 1 || data.size() <= kBlockBytes) return hash.Add(data);
  for (uint64_t at = 0; at < data.size(); at += stride * kBlockBytes) {
    hash.Add(data.subspan(at, std::min(kBlockBytes, data.size() - at)));
  }
  hash.Add(data.last(kBlockBytes));
}

}  // namespace

std::string ModelFingerprint(std::string_view config, const std::vector<Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.data.size();
  const uint64_t stride = std::max<uint64_t>(1, (bytes + kMaxHashedBytes - 1) / kMaxHashedBytes);
  Sha256 hash;
  hash.Add(config);
  for (const Tensor& tensor : tensors) {
    std::string header = Concat(tensor.name.size(), " ", tensor.name, " ", tensor.type_name);
    for (const int64_t size : tensor.shape) Append(header, " ", size);
    if (tensor.interleaved_heads != 0) Append(header, " interleaved ", tensor.interleaved_heads);
    Append(header, "\n");
    hash.Add(header);
    AddBlocks(hash, tensor.data, stride);
  }
  const Sha256::Digest digest = hash.Finish();
  return ToHex(std::span(digest).first(8));
}

}  // namespace baton
