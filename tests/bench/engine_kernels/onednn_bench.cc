// SPDX-License-Identifier: Apache-2.0
// Products of BF16 and of int8 weights by oneDNN, for comparison with kernels_bench; built where oneDNN is installed.
// Threads: OMP_NUM_THREADS.
//   flop/s as in kernels_bench; same_bits: 1 if a row gives the same beside others as alone, which serving needs.
//
// oneDNN 2 knows one scale per output, not one per group of inputs: its int8 is less than Q8_0 does.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

namespace baton {
namespace {

using benchmark::Counter;
using dnnl::memory;

constexpr memory::dim kSize = 2048;
constexpr int kMatrices = 24;  // more weights than the caches hold, as in a model

struct Types {
  memory::data_type x;
  memory::data_type weights;
  memory::data_type out;
};
constexpr Types kBF16 = {memory::data_type::bf16, memory::data_type::bf16, memory::data_type::f32};
constexpr Types kInt8 = {memory::data_type::u8, memory::data_type::s8, memory::data_type::s32};

class Product {
 public:
  Product(memory::dim rows, const Types& types) : x_(MemoryOf(rows, types.x)), out_(MemoryOf(rows, types.out)) {
    const memory::desc weights({kSize, kSize}, types.weights, memory::format_tag::any);
    description_ = dnnl::matmul::primitive_desc(dnnl::matmul::desc(x_.get_desc(), weights, out_.get_desc()), engine_);
    Fill(x_);
    memory plain = MemoryOf(kSize, types.weights);
    Fill(plain);
    for (int i = 0; i < kMatrices; ++i) {
      weights_.emplace_back(description_.weights_desc(), engine_);
      dnnl::reorder(plain, weights_.back()).execute(stream_, plain, weights_.back());
    }
    stream_.wait();
    matmul_ = dnnl::matmul(description_);
  }

  void Multiply(size_t matrix) {
    matmul_.execute(stream_,
                    {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights_[matrix % kMatrices]}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

  const uint32_t* FirstRow() const { return static_cast<const uint32_t*>(out_.get_data_handle()); }

 private:
  memory MemoryOf(memory::dim rows, memory::data_type type) const {
    return {memory::desc({rows, kSize}, type, memory::format_tag::ab), engine_};
  }

  // The same for the same index, so that first rows are equal.
  static void Fill(memory& m) {
    std::mt19937 random(1);
    const size_t bytes = m.get_desc().get_size();
    auto* const data = static_cast<uint8_t*>(m.get_data_handle());
    if (m.get_desc().data_type() == memory::data_type::bf16) {
      for (size_t i = 0; i + 1 < bytes; i += 2) {
        const auto value = static_cast<uint16_t>(0x3c00 | (random() & 0x83ff));  // 0.008 to 0.9, either sign
        std::memcpy(data + i, &value, sizeof(value));
      }
    } else {
      std::generate_n(data, bytes, [&random] { return static_cast<uint8_t>(random() % 100); });
    }
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory x_;
  memory out_;
  std::vector<memory> weights_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul matmul_;
};

void OneDnn(benchmark::State& state, const Types& types) {
  const auto rows = static_cast<memory::dim>(state.range(0));
  Product product(rows, types);
  size_t next = 0;
  for (auto _ : state) product.Multiply(next++);
  Product alone(1, types);
  alone.Multiply(0);
  product.Multiply(0);
  state.counters["flop"] = Counter(
      static_cast<double>(state.iterations()) * 2.0 * static_cast<double>(rows) * static_cast<double>(kSize * kSize),
      Counter::kIsRate);
  state.counters["same_bits"] = std::equal(alone.FirstRow(), alone.FirstRow() + kSize, product.FirstRow()) ? 1 : 0;
}

BENCHMARK_CAPTURE(OneDnn, BF16, kBF16)->ArgName("rows")->RangeMultiplier(8)->Range(1, 512)->UseRealTime();
BENCHMARK_CAPTURE(OneDnn, Int8, kInt8)->ArgName("rows")->RangeMultiplier(8)->Range(1, 512)->UseRealTime();

}  // namespace
}  // namespace baton
