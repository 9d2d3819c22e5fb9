// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/heap.h"

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton::jinja {
namespace {

constexpr size_t kObjectBytes = 64;   // approximate overhead of an object
constexpr size_t kBytesPerStep = 64;  // reading this many bytes takes about as long as one step

}  // namespace

absl::Status Heap::Step(size_t bytes) {
  steps_ += 1 + static_cast<int64_t>(bytes / kBytesPerStep);
  if (steps_ <= limits_.steps) return absl::OkStatus();
  return absl::ResourceExhaustedError(Concat("the template exceeds the limit of ", limits_.steps, " steps"));
}

absl::Status Heap::Reserve(size_t bytes) {
  // memory_bytes_ + bytes could overflow.
  if (bytes > limits_.memory_bytes - memory_bytes_) {
    return absl::ResourceExhaustedError(
        Concat("the template exceeds the limit of ", limits_.memory_bytes, " bytes of memory"));
  }
  memory_bytes_ += bytes;
  return Step(bytes);
}

absl::StatusOr<Value> Heap::NewString(std::string text) {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes + text.size()));
  return Value::String(strings_.emplace_back(std::move(text)));
}

absl::StatusOr<Value> Heap::NewSequence(std::vector<Value> items, bool is_tuple) {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes + items.size() * sizeof(Value)));
  lists_.push_back({std::move(items), is_tuple});
  return Value::Of(&lists_.back());
}

absl::StatusOr<Value> Heap::NewDict(std::vector<std::pair<Value, Value>> entries) {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes + entries.size() * 2 * sizeof(Value)));
  dicts_.push_back({std::move(entries)});
  return Value::Of(&dicts_.back());
}

absl::StatusOr<Value> Heap::NewMethod(Value receiver, std::string_view name) {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes));
  methods_.push_back({receiver, name});
  return Value::Of(&methods_.back());
}

absl::StatusOr<Dict*> Heap::NewNamespace() {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes));
  return &dicts_.emplace_back();
}

absl::StatusOr<Loop*> Heap::NewLoop(std::vector<Value> items) {
  BATON_RETURN_IF_ERROR(Reserve(kObjectBytes + items.size() * sizeof(Value)));
  loops_.push_back({std::move(items)});
  return &loops_.back();
}

absl::Status Heap::Enter() {
  if (++depth_ <= limits_.depth) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      Concat("the template exceeds the limit of ", limits_.depth, " levels of nesting"));
}

}  // namespace baton::jinja
