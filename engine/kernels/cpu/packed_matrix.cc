// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/cpu/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/formats/code_groups.h"
#include "engine/formats/half.h"

namespace baton::cpu {
namespace {

constexpr size_t kSectionAlignment = 64;

template <typename T>
T ReadUnaligned(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

float WidenOne(const std::byte* p, TensorType type) {
  if (type == TensorType::kF16) return HalfToFloat(ReadUnaligned<uint16_t>(p));
  if (type == TensorType::kBF16) return BFloat16ToFloat(ReadUnaligned<uint16_t>(p));
  assert(type == TensorType::kF32);
  return ReadUnaligned<float>(p);
}

// Returns the format that represents every value of the type.
PanelFormat FormatOf(TensorType type, const PanelOptions& options) {
  switch (type) {
    case TensorType::kF32: return PanelFormat::kF32;
    case TensorType::kF16: return PanelFormat::kF16;
    case TensorType::kBF16: return options.bf16_format;
    case TensorType::kQ8_0:
    case TensorType::kQ5_0: return PanelFormat::kInt8;
    case TensorType::kQ6_K: return PanelFormat::kInt8Fine;
    case TensorType::kQ5_1:
    case TensorType::kQ5_K: return PanelFormat::kInt8Min;
    case TensorType::kQ4_0: return PanelFormat::kInt4;
    case TensorType::kQ4_1:
    case TensorType::kQ4_K: return PanelFormat::kInt4Min;
  }
  return PanelFormat::kF32;
}

// QuantFormat for code that learns the format at run time.
struct QuantShape {
  int group_inputs;
  int zero;
  bool four_bits;
  bool has_min;
  int code_bytes;   // per output and group
  int group_bytes;  // per output and group
};

template <PanelFormat kFormat>
constexpr QuantShape Shape() {
  using Format = QuantFormat<kFormat>;
  return {.group_inputs = Format::kGroup,
          .zero = Format::kZero,
          .four_bits = Format::kFourBits,
          .has_min = Format::kHasMin,
          .code_bytes = Format::kCodeBytes,
          .group_bytes = Format::kGroupBytes};
}

QuantShape ShapeOf(PanelFormat format) {
  switch (format) {
    case PanelFormat::kInt8Fine: return Shape<PanelFormat::kInt8Fine>();
    case PanelFormat::kInt8Min: return Shape<PanelFormat::kInt8Min>();
    case PanelFormat::kInt4: return Shape<PanelFormat::kInt4>();
    case PanelFormat::kInt4Min: return Shape<PanelFormat::kInt4Min>();
    default: return Shape<PanelFormat::kInt8>();
  }
}

bool IsQuantized(PanelFormat format) { return format >= PanelFormat::kInt8; }

size_t PanelBytes(PanelFormat format, int inputs, int panel_outputs) {
  if (IsQuantized(format)) {
    const QuantShape shape = ShapeOf(format);
    const size_t groups = (size_t(inputs) + shape.group_inputs - 1) / shape.group_inputs;
    return groups * shape.group_bytes * panel_outputs;
  }
  if (format == PanelFormat::kBF16Pairs) return (size_t(inputs) + 1) / 2 * 4 * panel_outputs;
  return size_t(inputs) * panel_outputs * (format == PanelFormat::kF32 ? 4 : 2);
}

// Returns the row of the file's tensor that becomes row `row` of the matrix.
int FileRow(const TensorView& tensor, int row) {
  if (tensor.interleaved_heads == 0) return row;
  const int head_rows = tensor.rows / tensor.interleaved_heads;
  const int within = row % head_rows;
  const int half = head_rows / 2;
  return row - within + within % half * 2 + within / half;
}

// packed[i * stride] = in[i], unchanged.
template <typename T>
void Scatter(const std::byte* in, int count, std::byte* packed, size_t stride) {
  for (int i = 0; i < count; ++i) std::memcpy(packed + i * stride * sizeof(T), in + i * sizeof(T), sizeof(T));
}

// Packs one output of a quantized type as output number `lane` of `panel`. Codes stay as they are. Q4_K, Q5_K and Q6_K
// have two levels of scales: their product is rounded to F16.
void PackGroups(TensorType type, const std::byte* row, int inputs, PanelFormat format, int panel_outputs, int lane,
                std::byte* panel) {
  const QuantShape shape = ShapeOf(format);
  const size_t four_stride = size_t(panel_outputs) * 4;
  const size_t scale_offset = size_t(shape.code_bytes) * panel_outputs;
  for (int group = 0; group < inputs / shape.group_inputs; ++group) {
    CodeGroup weights;
    ReadCodeGroup(type, row, group, weights);
    std::array<uint8_t, kMaxGroupValues> codes;
    for (int i = 0; i < shape.group_inputs; ++i) codes[i] = static_cast<uint8_t>(weights.codes[i] + shape.zero);
    if (shape.four_bits) {
      const int half = shape.group_inputs / 2;
      for (int i = 0; i < half; ++i) codes[i] |= codes[i + half] << 4;
    }
    std::byte* const place = panel + size_t(lane) * 4;
    for (int i = 0; i < shape.code_bytes; i += 4) std::memcpy(place + i / 4 * four_stride, &codes[i], 4);
    const uint16_t scale = FloatToHalf(weights.scale);
    std::memcpy(panel + scale_offset + size_t(lane) * 2, &scale, sizeof(scale));
    if (shape.has_min) {
      const uint16_t min = FloatToHalf(weights.minimum);
      std::memcpy(panel + scale_offset + size_t(panel_outputs + lane) * 2, &min, sizeof(min));
    }
    panel += size_t(shape.group_bytes) * panel_outputs;
  }
}

void PackRow(const TensorView& from, int row, PanelFormat format, int panel_outputs, int lane, std::byte* panel) {
  const std::byte* const source = from.data + FileRow(from, row) * BytesOf(from.type, from.cols);
  switch (format) {
    case PanelFormat::kF32: return Scatter<uint32_t>(source, from.cols, panel + size_t(lane) * 4, panel_outputs);
    case PanelFormat::kF16:
    case PanelFormat::kBF16: return Scatter<uint16_t>(source, from.cols, panel + size_t(lane) * 2, panel_outputs);
    case PanelFormat::kBF16Pairs:
      Scatter<uint32_t>(source, from.cols / 2, panel + size_t(lane) * 4, panel_outputs);
      if (from.cols % 2 != 0) {
        std::memcpy(panel + (size_t(from.cols / 2) * panel_outputs + lane) * 4, source + size_t(from.cols - 1) * 2, 2);
      }
      return;
    default: return PackGroups(from.type, source, from.cols, format, panel_outputs, lane, panel);
  }
}

void ReadGroups(PanelFormat format, const std::byte* panel, int panel_outputs, int lane, int inputs, float* row) {
  const QuantShape shape = ShapeOf(format);
  for (int input = 0; input < inputs; ++input) {
    const int i = input % shape.group_inputs;
    const std::byte* const group = panel + input / shape.group_inputs * size_t(shape.group_bytes) * panel_outputs;
    const int half = shape.group_inputs / 2;
    const int place = shape.four_bits ? i % half : i;
    int code = std::to_integer<int>(group[(place / 4 * panel_outputs + lane) * 4 + place % 4]);
    if (shape.four_bits) code = i < half ? code & 0x0f : code >> 4;
    const std::byte* const scales = group + size_t(shape.code_bytes) * panel_outputs;
    row[input] = static_cast<float>(code - shape.zero) * WidenOne(scales + size_t(lane) * 2, TensorType::kF16);
    if (shape.has_min) row[input] += WidenOne(scales + size_t(panel_outputs + lane) * 2, TensorType::kF16);
  }
}

absl::Status CheckShapes(std::span<const TensorView> weights, int panel_outputs) {
  if (weights.empty()) return absl::InvalidArgumentError("no weights to pack: expected at least one tensor");
  int outputs = 0;
  for (const TensorView& part : weights) {
    if (part.rows <= 0 || part.cols <= 0 || part.cols != weights[0].cols) {
      return absl::InvalidArgumentError(Concat("weights have shape [", part.rows, ", ", part.cols, "], expected [n, ",
                                               weights[0].cols, "] with n >= 1"));
    }
    if (part.cols % InfoOf(part.type).block_values != 0) {
      return absl::InvalidArgumentError(Concat("weights of type ", InfoOf(part.type).name, " have rows of ", part.cols,
                                               " values, expected a multiple of ", InfoOf(part.type).block_values));
    }
    if (part.interleaved_heads != 0 && part.rows % (2 * part.interleaved_heads) != 0) {
      return absl::InvalidArgumentError(Concat("weights of ", part.interleaved_heads, " interleaved heads have ",
                                               part.rows, " rows, expected a multiple of ",
                                               2 * part.interleaved_heads));
    }
    if (__builtin_add_overflow(outputs, part.rows, &outputs) || outputs > INT32_MAX - panel_outputs) {
      return absl::InvalidArgumentError("stacked weights have too many outputs: expected fewer than 2^31");
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Widen(const std::byte* in, size_t in_stride, TensorType type, size_t count, float* out) {
  const size_t step = in_stride * BytesOf(type, 1);
  for (size_t i = 0; i < count; ++i) out[i] = WidenOne(in + i * step, type);
}

absl::StatusOr<std::unique_ptr<PackedMatrix>> PackedMatrix::Create(std::span<const TensorView> weights,
                                                                   const PanelOptions& options, ThreadPool& threads) {
  BATON_RETURN_IF_ERROR(CheckShapes(weights, options.outputs));
  const int inputs = weights[0].cols;
  std::unique_ptr<PackedMatrix> matrix(new PackedMatrix(inputs, options.outputs));
  std::vector<std::span<const TensorView>> parts;  // the weights of each section
  std::vector<size_t> offsets;
  size_t bytes = 0;
  for (size_t i = 0; i < weights.size();) {
    const size_t begin = i;
    const PanelFormat format = FormatOf(weights[begin].type, options);
    Section section = {.format = format,
                       .first_output = matrix->outputs_,
                       .outputs = 0,
                       .panels = 0,
                       .panel_bytes = PanelBytes(format, inputs, options.outputs),
                       .data = nullptr};
    for (; i < weights.size() && FormatOf(weights[i].type, options) == format; ++i) section.outputs += weights[i].rows;
    section.panels = (section.outputs + options.outputs - 1) / options.outputs;
    matrix->outputs_ += section.outputs;
    matrix->sections_.push_back(section);
    parts.push_back(weights.subspan(begin, i - begin));
    offsets.push_back(bytes);
    bytes += (section.panels * section.panel_bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
  }
  BATON_ASSIGN_OR_RETURN(matrix->memory_, AllocateHostMemory(bytes, /*huge_pages=*/true));
  for (size_t s = 0; s < matrix->sections_.size(); ++s) {
    Section& section = matrix->sections_[s];
    std::byte* const data = matrix->memory_.data() + offsets[s];
    section.data = data;
    threads.Run([&](int thread) {
      const Share share = ShareOf(section.panels, thread, threads.threads());
      // `part` is the tensor of the first output, `row` its row there.
      int row = share.begin * options.outputs;
      size_t part = 0;
      const int end = std::min(share.end * options.outputs, section.outputs);
      for (int output = row; output < end; ++output, ++row) {
        for (; row >= parts[s][part].rows; ++part) row -= parts[s][part].rows;
        PackRow(parts[s][part], row, section.format, options.outputs, output % options.outputs,
                data + output / options.outputs * section.panel_bytes);
      }
    });
  }
  return matrix;
}

void PackedMatrix::ReadOutput(int output, float* row) const {
  assert(output >= 0 && output < outputs_);
  const Section* section = sections_.data();
  while (output >= section->first_output + section->outputs) ++section;
  output -= section->first_output;
  const std::byte* const panel = section->data + output / panel_outputs_ * section->panel_bytes;
  const int lane = output % panel_outputs_;
  switch (section->format) {
    case PanelFormat::kF32: return Widen(panel + size_t(lane) * 4, panel_outputs_, TensorType::kF32, inputs_, row);
    case PanelFormat::kF16: return Widen(panel + size_t(lane) * 2, panel_outputs_, TensorType::kF16, inputs_, row);
    case PanelFormat::kBF16: return Widen(panel + size_t(lane) * 2, panel_outputs_, TensorType::kBF16, inputs_, row);
    case PanelFormat::kBF16Pairs:
      for (int i = 0; i < inputs_; ++i) {
        row[i] = WidenOne(panel + (size_t(i / 2) * panel_outputs_ + lane) * 4 + size_t(i % 2) * 2, TensorType::kBF16);
      }
      return;
    default: return ReadGroups(section->format, panel, panel_outputs_, lane, inputs_, row);
  }
}

}  // namespace baton::cpu

namespace baton {

size_t PackedBytes(TensorType type, size_t values) {
  if (!IsQuantized(type)) return BytesOf(type, values);
  const cpu::QuantShape shape = cpu::ShapeOf(cpu::FormatOf(type, {}));
  return values / shape.group_inputs * shape.group_bytes;
}

}  // namespace baton
