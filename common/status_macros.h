// SPDX-License-Identifier: Apache-2.0
// Early returns for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function if `expr`, an absl::Status, is not OK.
#define BATON_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                  \
    if (absl::Status baton_status_ = (expr); !baton_status_.ok()) return baton_status_; \
  } while (false)

// Assigns the value of `expr`, an absl::StatusOr, to `lhs` (which may declare a variable), or returns its status.
#define BATON_ASSIGN_OR_RETURN(lhs, expr) BATON_ASSIGN_OR_RETURN_IMPL_(BATON_CONCAT_(baton_or_, __LINE__), lhs, expr)

#define BATON_CONCAT_IMPL_(a, b) a##b
#define BATON_CONCAT_(a, b) BATON_CONCAT_IMPL_(a, b)
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
#define BATON_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return std::move(tmp).status();     \
  lhs = *std::move(tmp)
// NOLINTEND(bugprone-macro-parentheses)
