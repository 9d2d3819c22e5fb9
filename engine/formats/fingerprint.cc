#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/escaping.h"
#include "common/strings.h"
#include "engine/formats/checkpoint.h"

namespace baton {
namespace {

constexpr uint64_t kHashedWhole = uint64_t{64} << 20;
constexpr uint64_t kBlockBytes = 4096;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void Add(const void* data, size_t bytes) { EVP_DigestUpdate(context_.get(), data, bytes); }
  std::string HexPrefix(size_t bytes) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), bytes});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// Every `stride`-th block of `data`, and its last bytes.
void AddBlocks(Sha256& hash, std::span<const std::byte> data, uint64_t stride) {
  if (stride == 1 || data.size() <= kBlockBytes) return hash.Add(data.data(), data.size());
  for (uint64_t at = 0; at < data.size(); at += stride * kBlockBytes) {
    const auto block = data.subspan(at, std::min(kBlockBytes, data.size() - at));
    hash.Add(block.data(), block.size());
  }
  const auto last = data.last(kBlockBytes);
  hash.Add(last.data(), last.size());
}

}  // namespace

std::string ModelFingerprint(std::string_view config, const std::vector<Tensor>& tensors) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.data.size();
  const uint64_t stride = std::max<uint64_t>(1, (bytes + kHashedWhole - 1) / kHashedWhole);
  Sha256 hash;
  hash.Add(config.data(), config.size());
  for (const Tensor& tensor : tensors) {
    std::string header = Concat(tensor.name.size(), " ", tensor.name, " ", tensor.dtype_name);
    for (const int64_t size : tensor.shape) Append(header, " ", size);
    Append(header, "\n");
    hash.Add(header.data(), header.size());
    AddBlocks(hash, tensor.data, stride);
  }
  return hash.HexPrefix(8);
}

}  // namespace baton
