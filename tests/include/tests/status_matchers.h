// EXPECT_OK / ASSERT_OK / ASSERT_OK_AND_ASSIGN for absl::Status and StatusOr.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::testing {

inline constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

// `value` has `code` and its message contains `text`.
template <typename T>
::testing::AssertionResult Fails(const T& value, absl::StatusCode code, const std::string& text) {
  const absl::Status& status = AsStatus(value);
  if (status.code() == code && std::string(status.message()).find(text) != std::string::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "expected " << code << " with \"" << text << "\", got " << status;
}

}  // namespace baton::testing

#define EXPECT_OK(expr) EXPECT_TRUE(::baton::testing::AsStatus(expr).ok()) << ::baton::testing::AsStatus(expr)
#define ASSERT_OK(expr)                                                       \
  do {                                                                        \
    const absl::Status baton_test_status_ = ::baton::testing::AsStatus(expr); \
    ASSERT_TRUE(baton_test_status_.ok()) << baton_test_status_;               \
  } while (false)

#define ASSERT_OK_AND_ASSIGN(lhs, expr) ASSERT_OK_AND_ASSIGN_IMPL_(BATON_TEST_CONCAT_(baton_or_, __LINE__), lhs, expr)
#define BATON_TEST_CONCAT_IMPL_(a, b) a##b
#define BATON_TEST_CONCAT_(a, b) BATON_TEST_CONCAT_IMPL_(a, b)
#define ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  ASSERT_TRUE(tmp.ok()) << tmp.status();           \
  lhs = *std::move(tmp)
