// SPDX-License-Identifier: Apache-2.0
// The explored world's admission and page pool: one page that all prompts share, and three more.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "fifo_admission.h"
#include "kvtransfer/handoff/receiver_machine.h"
#include "mutation.h"

namespace baton::handoff {

constexpr int kModelMaxWaiting = 4;  // claims
constexpr int kPages = 3;            // but for the shared one
constexpr PageId kSharedPage{kPages};
constexpr PageHash kSharedName = {1};

// Which pages are free. Notes misuse instead of failing, so that the explorer can report how it came about.
class ModelPool final : public FifoAdmission {
 public:
  ModelPool() : FifoAdmission(kModelMaxWaiting) {}
  int free_pages() const;
  void Release(std::span<const PageId> pages) override;
  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override;

  bool used(PageId page) const { return page == kSharedPage ? holders_ > 0 : used_[ToIndex(page)]; }
  int holders() const { return holders_; }  // of the shared page
  bool any_quarantined() const;
  const char* misuse() const;
  // A pool that breaks a rule itself; its misuse is not noted, so that what follows from it must be found.
  void set_mutation(Mutation mutation) { mutation_ = mutation; }

  template <typename H>
  friend H AbslHashValue(H h, const ModelPool& pool) {
    return H::combine(std::move(h), static_cast<const FifoAdmission&>(pool), pool.used_, pool.quarantined_,
                      pool.holders_);
  }

 protected:
  GrantedPages Allocate(int count, std::span<const PageHash> names) override;
  int usable_pages() const override;

 private:
  std::array<bool, kPages> used_{};
  std::array<bool, kPages> quarantined_{};
  int8_t holders_ = 0;
  const char* misuse_ = nullptr;
  Mutation mutation_ = Mutation::kNone;
};

}  // namespace baton::handoff
