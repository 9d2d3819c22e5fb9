// SPDX-License-Identifier: Apache-2.0
// EXPECT_OK / ASSERT_OK / ASSERT_OK_AND_ASSIGN for absl::Status and StatusOr.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::testing {

inline constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

inline absl::Status AsStatus(const absl::Status& status) { return status; }
template <typename T>
absl::Status AsStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

template <typename T>
::testing::AssertionResult IsOk(const T& value) {
  if (value.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << AsStatus(value);
}

// `value` has `code` and its message contains `text`.
template <typename T>
::testing::AssertionResult Fails(const T& value, absl::StatusCode code, const std::string& text) {
  const absl::Status status = AsStatus(value);
  if (status.code() == code && std::string(status.message()).find(text) != std::string::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "expected " << code << " with \"" << text << "\", got " << status;
}

}  // namespace baton::testing

#define EXPECT_OK(expr) EXPECT_TRUE(::baton::testing::IsOk(expr))
#define ASSERT_OK(expr) ASSERT_TRUE(::baton::testing::IsOk(expr))

#define ASSERT_OK_AND_ASSIGN(lhs, expr) ASSERT_OK_AND_ASSIGN_IMPL_(BATON_TEST_CONCAT_(baton_or_, __LINE__), lhs, expr)
#define BATON_TEST_CONCAT_IMPL_(a, b) a##b
#define BATON_TEST_CONCAT_(a, b) BATON_TEST_CONCAT_IMPL_(a, b)
// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations take none
#define ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  ASSERT_OK(tmp);                                  \
  lhs = *std::move(tmp)
// NOLINTEND(bugprone-macro-parentheses)
