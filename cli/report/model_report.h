// SPDX-License-Identifier: Apache-2.0
// Formats a ModelReport for people and for programs.
#pragma once

#include <string>

#include "cli/tools/inspect_model.h"

namespace baton {

std::string ToText(const std::string& path, const ModelReport& report);
// Returns one line without its newline. Sizes are in bytes. For a model that cannot be served, `config` is null and
// `problem` says why.
std::string ToJson(const std::string& path, const ModelReport& report);

}  // namespace baton
