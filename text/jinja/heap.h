// SPDX-License-Identifier: Apache-2.0
// A Heap owns all objects that a render creates and enforces the render's limits on steps, memory and depth. A method
// that exceeds a limit returns RESOURCE_EXHAUSTED.
//
// Objects live until the Heap is destroyed, so values may refer to each other freely. Not thread-safe: each render has
// its own Heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/jinja/value.h"

namespace baton::jinja {

// Typical templates take some hundred steps per message and create little more text than their output.
struct Limits {
  int64_t steps = 5'000'000;
  size_t memory_bytes = size_t{256} << 20;
  int depth = 400;  // of recursion: nested expressions, macro calls, nested values
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Accounts for one step and for reading `bytes` bytes. Call before the work.
  absl::Status Step(size_t bytes = 0);
  // Accounts for `bytes` bytes of memory. Call before the allocation.
  absl::Status Reserve(size_t bytes);

  absl::StatusOr<Value> NewString(std::string text);
  absl::StatusOr<Value> NewSequence(std::vector<Value> items, bool is_tuple);
  absl::StatusOr<Value> NewList(std::vector<Value> items) { return NewSequence(std::move(items), false); }
  absl::StatusOr<Value> NewTuple(std::vector<Value> items) { return NewSequence(std::move(items), true); }
  absl::StatusOr<Value> NewDict(std::vector<std::pair<Value, Value>> entries);
  absl::StatusOr<Value> NewMethod(Value receiver, std::string_view name);
  // The caller may modify the returned object; all other objects are immutable.
  absl::StatusOr<Dict*> NewNamespace();
  absl::StatusOr<Loop*> NewLoop(std::vector<Value> items);

  // Enter and leave one level of recursion. Use DepthGuard.
  absl::Status Enter();
  void Leave() { --depth_; }

 private:
  const Limits limits_;
  int64_t steps_ = 0;
  size_t memory_bytes_ = 0;
  int depth_ = 0;
  std::deque<std::string> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Loop> loops_;
  std::deque<BoundMethod> methods_;
};

// Accounts for one level of recursion during its lifetime. The caller must return status() unless it is OK.
class DepthGuard {
 public:
  explicit DepthGuard(Heap& heap) : heap_(heap), status_(heap.Enter()) {}
  ~DepthGuard() { heap_.Leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  Heap& heap_;
  const absl::Status status_;
};

}  // namespace baton::jinja
