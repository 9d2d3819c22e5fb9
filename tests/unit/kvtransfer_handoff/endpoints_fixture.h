// SPDX-License-Identifier: Apache-2.0
// A decode and a prefill worker's endpoints, and one request at a time between them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"
#include "two_workers.h"

namespace baton::handoff_test {

inline constexpr int kTokens = 10;  // three pages of four

class EndpointsTest : public ::testing::Test {
 protected:
  void StartDecode(DecodeSide::Settings settings = {}) { decode_ = std::make_unique<DecodeSide>(std::move(settings)); }
  void StartPrefill(const PrefillSide::Settings& settings = {}) { prefill_ = std::make_unique<PrefillSide>(settings); }
  void Start() {
    StartDecode();
    StartPrefill();
  }

  void OpenAndReserve(uint64_t request, int tokens = kTokens) {
    EXPECT_OK(decode_->receiver().OpenAttempt(Key(request), absl::Now()));
    prefill_->Reserve(Key(request), decode_->target(), tokens);
  }
  void GetGranted(uint64_t request, int tokens = kTokens) {
    OpenAndReserve(request, tokens);
    ASSERT_NE(Prefill(absl::StrCat("granted ", request)), "");
  }
  void HandOver(uint64_t request, int tokens = kTokens) {
    GetGranted(request, tokens);
    prefill_->Put(Key(request), tokens);
    prefill_->sender().Commit(Key(request), {42});
    ASSERT_NE(Decode(absl::StrCat("received ", request)), "");
    ASSERT_NE(Prefill(absl::StrCat("done ", request)), "");
  }

  std::string Prefill(const std::string& text) { return prefill_->diary().WaitFor(text); }
  std::string Decode(const std::string& text) { return decode_->diary().WaitFor(text); }
  void ExpectNothingHeld() {
    EXPECT_TRUE(Eventually([&] { return decode_->IsEmpty(); }));
    EXPECT_TRUE(Eventually([&] { return prefill_->IsEmpty(); }));
    EXPECT_EQ(decode_->pool().counts().quarantined, 0u);
    EXPECT_EQ(decode_->diary().Count("corrupt"), 0);
  }

  std::unique_ptr<DecodeSide> decode_;
  std::unique_ptr<PrefillSide> prefill_;
};

}  // namespace baton::handoff_test
