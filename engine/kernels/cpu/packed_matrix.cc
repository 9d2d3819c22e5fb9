#include "engine/kernels/cpu/packed_matrix.h"

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace baton::cpu {
namespace {

template <typename T>
T ReadUnaligned(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

float FromBF16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float FromF16(uint16_t bits) {
  // Exponent and mantissa in their place, then the exponent's bias corrected by a product, exact for subnormals too.
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const float magnitude = std::bit_cast<float>(uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
  const uint32_t special = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;  // infinity, NaN
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | special | sign);
}

float WidenOne(const std::byte* p, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ReadUnaligned<float>(p);
    case DType::kF16:
      return FromF16(ReadUnaligned<uint16_t>(p));
    case DType::kBF16:
      return FromBF16(ReadUnaligned<uint16_t>(p));
  }
  return 0;
}

// packed[i * stride] = in[i], unchanged.
template <typename T>
void Scatter(const std::byte* in, int count, T* packed, int stride) {
  for (int i = 0; i < count; ++i) packed[size_t(i) * stride] = ReadUnaligned<T>(in + size_t(i) * sizeof(T));
}

}  // namespace

void Widen(const std::byte* in, size_t in_stride, DType dtype, size_t count, float* out) {
  const size_t step = in_stride * SizeOf(dtype);
  for (size_t i = 0; i < count; ++i) out[i] = WidenOne(in + i * step, dtype);
}

absl::StatusOr<std::unique_ptr<PackedMatrix>> PackedMatrix::Create(std::span<const TensorView> weights,
                                                                   int panel_outputs, ThreadPool& threads) {
  if (weights.empty()) return absl::InvalidArgumentError("no weights to pack");
  const int inputs = weights[0].cols;
  DType dtype = ToDType(weights[0].type);
  int outputs = 0;
  for (const TensorView& part : weights) {
    if (part.rows <= 0 || part.cols <= 0 || part.cols != inputs) {
      return absl::InvalidArgumentError(
          absl::StrCat("weights of shape [", part.rows, ", ", part.cols, "] where [n, ", inputs, "] was expected"));
    }
    if (ToDType(part.type) != dtype) dtype = DType::kF32;
    if (__builtin_add_overflow(outputs, part.rows, &outputs) || outputs > INT32_MAX - panel_outputs) {
      return absl::InvalidArgumentError("weights with more than 2^31 outputs");
    }
  }
  const size_t padded = (size_t(outputs) + panel_outputs - 1) / panel_outputs * panel_outputs;
  BATON_ASSIGN_OR_RETURN(HostMemory memory, HostMemory::Allocate(padded * inputs * SizeOf(dtype), /*huge_pages=*/true));
  std::unique_ptr<PackedMatrix> matrix(new PackedMatrix(outputs, inputs, panel_outputs, dtype, std::move(memory)));
  threads.Run([&](int thread) {
    const Share share = ShareOf(matrix->panels(), thread, threads.threads());
    for (int panel = share.begin; panel < share.end; ++panel) matrix->PackPanel(weights, panel);
  });
  return matrix;
}

PackedMatrix::PackedMatrix(int outputs, int inputs, int panel_outputs, DType dtype, HostMemory memory)
    : outputs_(outputs), inputs_(inputs), panel_outputs_(panel_outputs), dtype_(dtype), memory_(std::move(memory)) {}

void PackedMatrix::PackPanel(std::span<const TensorView> weights, int panel) {
  std::byte* const packed = static_cast<std::byte*>(memory_.data()) + panel * panel_bytes();
  std::vector<float> widened;
  // The part that the panel's first output is in, and its row there.
  int row = panel * panel_outputs_;
  size_t part = 0;
  for (int lane = 0; lane < panel_outputs_; ++lane, ++row) {
    for (; part < weights.size() && row >= weights[part].rows; ++part) row -= weights[part].rows;
    if (part == weights.size()) return;  // the rest of the last panel stays zero
    const TensorView& from = weights[part];
    const std::byte* const source = from.data + size_t(row) * inputs_ * SizeOf(ToDType(from.type));
    if (dtype_ != DType::kF32) {
      Scatter(source, inputs_, reinterpret_cast<uint16_t*>(packed) + lane, panel_outputs_);
    } else if (from.type == TensorType::kF32) {
      Scatter(source, inputs_, reinterpret_cast<float*>(packed) + lane, panel_outputs_);
    } else {
      widened.resize(inputs_);
      Widen(source, 1, ToDType(from.type), inputs_, widened.data());
      Scatter(reinterpret_cast<const std::byte*>(widened.data()), inputs_, reinterpret_cast<float*>(packed) + lane,
              panel_outputs_);
    }
  }
}

void PackedMatrix::ReadOutput(int output, float* row) const {
  assert(output >= 0 && output < outputs_);
  const std::byte* const first =
      data() + output / panel_outputs_ * panel_bytes() + size_t(output % panel_outputs_) * SizeOf(dtype_);
  Widen(first, panel_outputs_, dtype_, inputs_, row);
}

}  // namespace baton::cpu
