// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/timed_backend.h"

#include <utility>

#include "common/steady_time.h"

namespace baton {
namespace {

class TimedBackend final : public Backend {
 public:
  TimedBackend(std::unique_ptr<Backend> backend, WorkTimes* times) : backend_(std::move(backend)), times_(*times) {}

  std::string_view family() const override { return backend_->family(); }
  int revision() const override { return backend_->revision(); }
  MemoryKind kv_memory() const override { return backend_->kv_memory(); }
  absl::StatusOr<std::unique_ptr<Matrix>> PackStacked(std::span<const TensorView> weights) override {
    return backend_->PackStacked(weights);
  }
  absl::StatusOr<std::unique_ptr<WeightVector>> PackVector(const TensorView& weights) override {
    return backend_->PackVector(weights);
  }
  absl::StatusOr<std::unique_ptr<RotaryTable>> PackRotary(RopeTable table) override {
    return backend_->PackRotary(std::move(table));
  }
  absl::StatusOr<std::unique_ptr<Activations>> Allocate(int capacity_rows, int cols) override {
    return backend_->Allocate(capacity_rows, cols);
  }
  float* HostData(Activations& x) override { return backend_->HostData(x); }
  MachineLimits MeasureLimits(std::span<const Matrix* const> weights) override {
    return backend_->MeasureLimits(weights);
  }
  absl::Duration waited() const override { return backend_->waited(); }

  void BeginStep(const StepRows& step) override {
    Timed(times_.attention, [&] { backend_->BeginStep(step); });
  }
  void Embed(const Matrix& table, Activations& out) override {
    Timed(times_.element_wise, [&] { backend_->Embed(table, out); });
  }
  void RmsNorm(const Activations& x, int rows, const WeightVector& weight, float eps, Activations& out) override {
    Timed(times_.element_wise, [&] { backend_->RmsNorm(x, rows, weight, eps, out); });
  }
  void MatMul(const Matrix& w, const Activations& x, int rows, Activations& out) override {
    Timed(times_.products, [&] { backend_->MatMul(w, x, rows, out); });
  }
  void Add(Activations& x, const Activations& y, int rows) override {
    Timed(times_.element_wise, [&] { backend_->Add(x, y, rows); });
  }
  void SiluMul(const Activations& x, int rows, Activations& out) override {
    Timed(times_.element_wise, [&] { backend_->SiluMul(x, rows, out); });
  }
  void HeadNorm(Activations& x, int rows, int first_col, int heads, const WeightVector& weight, float eps) override {
    Timed(times_.element_wise, [&] { backend_->HeadNorm(x, rows, first_col, heads, weight, eps); });
  }
  void Rope(Activations& x, int first_col, int heads, const RotaryTable& table) override {
    Timed(times_.element_wise, [&] { backend_->Rope(x, first_col, heads, table); });
  }
  void WriteKv(const Activations& qkv, int k_col, int v_col, LayerKv kv) override {
    Timed(times_.kv, [&] { backend_->WriteKv(qkv, k_col, v_col, kv); });
  }
  void Attention(const Activations& qkv, RowSet rows, LayerKv kv, Activations& out) override {
    Timed(times_.attention, [&] { backend_->Attention(qkv, rows, kv, out); });
  }
  void GatherRows(const Activations& x, RowSet set, int first, int count, Activations& out) override {
    Timed(times_.element_wise, [&] { backend_->GatherRows(x, set, first, count, out); });
  }
  void Sample(const Activations& logits, int first, std::span<const SampleRow> rows) override {
    Timed(times_.sampling, [&] { backend_->Sample(logits, first, rows); });
  }
  void AddRmsNorm(Activations& x, const Activations& y, int rows, const WeightVector& weight, float eps,
                  Activations& out) override {
    Timed(times_.element_wise, [&] { backend_->AddRmsNorm(x, y, rows, weight, eps, out); });
  }
  void RotateAndWriteKv(Activations& qkv, const HeadNorms& norms, const RotaryTable& table, LayerKv kv) override {
    Timed(times_.kv, [&] { backend_->RotateAndWriteKv(qkv, norms, table, kv); });
  }

 private:
  template <typename F>
  void Timed(absl::Duration& time, F work) {
    const absl::Duration waited = backend_->waited();
    const Stopwatch watch;
    work();
    time += watch.elapsed();
    times_.waiting += backend_->waited() - waited;
  }

  const std::unique_ptr<Backend> backend_;
  WorkTimes& times_;
};

}  // namespace

std::unique_ptr<Backend> TimeBackend(std::unique_ptr<Backend> backend, WorkTimes* times) {
  return std::make_unique<TimedBackend>(std::move(backend), times);
}

}  // namespace baton
