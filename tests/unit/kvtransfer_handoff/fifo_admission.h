// SPDX-License-Identifier: Apache-2.0
// An Admission for tests: grants claims in the order in which they came, each as soon as it fits. A copyable value.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvtransfer/handoff/admission.h"

namespace baton::handoff {

class FifoAdmission : public Admission {
 public:
  explicit FifoAdmission(int max_waiting) : max_waiting_(max_waiting) {}

  absl::Status Enqueue(Claim claim) override {
    if (int(waiting_.size()) >= max_waiting_) {
      return absl::ResourceExhaustedError(absl::StrCat(max_waiting_, " reservations wait, the limit"));
    }
    waiting_.push_back({std::move(claim)});
    return absl::OkStatus();
  }
  std::vector<Decision> TakeDecisions() override {
    std::vector<Decision> decisions;
    std::vector<Waiting> waiting = std::exchange(waiting_, {});
    for (Waiting& next : waiting) {
      if (next.claim.pages > usable_pages()) {
        decisions.push_back({next.claim.key, absl::ResourceExhaustedError("pages are in quarantine")});
        continue;
      }
      GrantedPages granted;
      if (!next.on_hold) granted = Allocate(next.claim.pages, next.claim.names);
      if (granted.pages.empty()) {
        waiting_.push_back(std::move(next));
      } else {
        decisions.push_back({next.claim.key, std::move(granted)});
        ++slots_;
      }
    }
    return decisions;
  }
  void Withdraw(const AttemptKey& key) override {
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.claim.key == key; });
  }
  void Hold(const AttemptKey& key, bool hold) override {
    for (Waiting& waiting : waiting_) {
      if (waiting.claim.key == key) waiting.on_hold = hold;
    }
  }
  void Leave(const AttemptKey&) override { --slots_; }

  int slots() const { return slots_; }  // of claims that were granted and have not left
  int waiting() const { return int(waiting_.size()); }
  // The claim that came last.
  const Claim& last_claim() const { return waiting_.back().claim; }

  template <typename H>
  friend H AbslHashValue(H h, const FifoAdmission& admission) {
    for (const Waiting& waiting : admission.waiting_) {
      h = H::combine(std::move(h), waiting.claim.key, waiting.on_hold);
    }
    return H::combine(std::move(h), admission.waiting_.size(), admission.slots_);
  }

 protected:
  // Takes `count` pages, or none.
  virtual GrantedPages Allocate(int count, std::span<const PageHash> names) = 0;
  virtual int usable_pages() const = 0;  // those outside of quarantine

 private:
  struct Waiting {
    Claim claim;
    bool on_hold = false;
  };
  int max_waiting_;
  std::vector<Waiting> waiting_;
  int slots_ = 0;
};

}  // namespace baton::handoff
