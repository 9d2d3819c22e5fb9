// SPDX-License-Identifier: Apache-2.0
// The result of `verify`, as tables and as JSON.
#pragma once

#include <string>

#include "cli/pairs/verify.h"

namespace baton {

// Returns, for each group: the checks, the paths, the first difference and the first failure. The last line is the
// verdict.
std::string ToText(const VerifyResult& result, bool strict);

// Returns one line without its newline.
std::string ToJson(const std::string& target, const VerifyResult& result, bool strict);

}  // namespace baton
