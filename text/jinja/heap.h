// Owns everything a render makes, and meters what it costs.
//
// Objects are freed together at the end, so that values may refer to each other as they like. Every limit, once hit, is
// RESOURCE_EXHAUSTED.
//
// Not thread-safe: one for each render.
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

// A real template takes some hundred steps for each message and makes little more text than it puts out.
struct Limits {
  int64_t steps = 5'000'000;
  size_t memory_bytes = size_t{256} << 20;
  int depth = 400;  // of nested evaluation: expressions, macros, values within values
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Meters one step, and the work of going through `bytes` bytes.
  absl::Status Step(size_t bytes = 0);
  // Meters memory that is about to be used.
  absl::Status Reserve(size_t bytes);

  absl::StatusOr<Value> NewString(std::string text);
  absl::StatusOr<Value> NewList(std::vector<Value> items);
  absl::StatusOr<Value> NewTuple(std::vector<Value> items);
  absl::StatusOr<Value> NewDict(std::vector<std::pair<Value, Value>> entries);
  absl::StatusOr<Value> NewMethod(Value receiver, std::string_view name);
  // These may be changed by whoever made them.
  absl::StatusOr<Dict*> NewNamespace();
  absl::StatusOr<Loop*> NewLoop(std::vector<Value> items);

  // Counts the nesting of a recursion; see DepthGuard.
  absl::Status Enter();
  void Leave() { --depth_; }

 private:
  absl::StatusOr<Value> NewSequence(std::vector<Value> items, bool is_tuple);

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

// Held during one level of a recursion; status() says whether it may go on.
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
