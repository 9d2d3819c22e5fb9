// SPDX-License-Identifier: Apache-2.0
#include "cli/report/engine_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/table.h"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;

std::string Percent(double part, double whole) { return absl::StrFormat("%.1f", whole > 0 ? 100 * part / whole : 0); }

// Returns the most operations per second that this machine reaches with products of such weights.
double PeakOperations(const EngineReport& report) {
  if (IsQuantized(report.weight_type)) return report.limits.int8_per_second;
  if (report.weight_type == TensorType::kBF16 && report.limits.bf16_per_second > 0)
    return report.limits.bf16_per_second;
  return report.limits.f32_per_second;
}

// Returns the part of the step that no column of its own counts.
absl::Duration Rest(const EngineMeasurement& m) {
  const WorkTimes& w = m.work;
  return std::max(absl::ZeroDuration(),
                  absl::Seconds(m.step_seconds) - w.products - w.attention - w.kv - w.element_wise - w.sampling);
}

}  // namespace

std::string ToTable(const EngineBenchOptions& options, const EngineReport& report) {
  const MachineLimits& limits = report.limits;
  std::string text = absl::StrFormat(
      "%s, %d threads, kernels %s, %.2f GB of weights ready in %.2f s\n"
      "machine limits, measured now: reads %.1f GB/s; products %.0f GOP/s int8, %.0f GFLOP/s bf16, %.0f GFLOP/s "
      "f32\n\n",
      options.model.string(), options.engine.threads, report.kernels, static_cast<double>(report.weight_bytes) / kGiga,
      report.load_seconds, limits.read_bytes_per_second / kGiga, limits.int8_per_second / kGiga,
      limits.bf16_per_second / kGiga, limits.f32_per_second / kGiga);
  Table table({"work", "tokens/s", "step ms", "GOP/s", "% of limit", "GB/s", "% of limit", "products %", "attention %",
               "kv %", "element-wise %", "sampling %", "rest %", "(waiting %)"});
  for (const EngineMeasurement& m : report.measurements) {
    const auto share = [&m](absl::Duration part) { return Percent(absl::ToDoubleSeconds(part), m.step_seconds); };
    table.AddRow({m.prefill ? absl::StrCat("prefill ", options.prompt_tokens)
                            : absl::StrCat("decode ", m.sequences, " after ", m.context_tokens),
                  absl::StrFormat("%.1f", m.tokens_per_second), absl::StrFormat("%.2f", m.step_seconds * 1e3),
                  absl::StrFormat("%.0f", m.operations_per_second / kGiga),
                  Percent(m.operations_per_second, PeakOperations(report)),
                  absl::StrFormat("%.1f", m.read_bytes_per_second / kGiga),
                  Percent(m.read_bytes_per_second, limits.read_bytes_per_second), share(m.work.products),
                  share(m.work.attention), share(m.work.kv), share(m.work.element_wise), share(m.work.sampling),
                  share(Rest(m)), share(m.work.waiting)});
  }
  absl::StrAppend(&text, table.ToString());
  return text;
}

std::string ToJson(const EngineBenchOptions& options, const EngineReport& report) {
  const MachineLimits& limits = report.limits;
  Json json = {{"model", options.model.string()},
               {"numerics_id", report.numerics_id},
               {"threads", options.engine.threads},
               {"kernels", report.kernels},
               {"weight_bytes", report.weight_bytes},
               {"load_seconds", report.load_seconds},
               {"limits",
                {{"read_bytes", limits.read_bytes_per_second},
                 {"int8_operations", limits.int8_per_second},
                 {"bf16_operations", limits.bf16_per_second},
                 {"f32_operations", limits.f32_per_second}}},
               {"measurements", Json::array()}};
  for (const EngineMeasurement& m : report.measurements) {
    const auto seconds = [](absl::Duration d) { return absl::ToDoubleSeconds(d); };
    json["measurements"].push_back({{"work", m.prefill ? "prefill" : "decode"},
                                    {"sequences", m.sequences},
                                    {"prompt_tokens", m.prefill ? options.prompt_tokens : m.context_tokens},
                                    {"tokens_per_second", m.tokens_per_second},
                                    {"step_seconds", m.step_seconds},
                                    {"operations_per_second", m.operations_per_second},
                                    {"read_bytes_per_second", m.read_bytes_per_second},
                                    {"products", seconds(m.work.products)},
                                    {"attention", seconds(m.work.attention)},
                                    {"kv", seconds(m.work.kv)},
                                    {"element_wise", seconds(m.work.element_wise)},
                                    {"sampling", seconds(m.work.sampling)},
                                    {"rest", seconds(Rest(m))},
                                    {"waiting", seconds(m.work.waiting)}});
  }
  return json.dump();
}

}  // namespace baton
