// What `baton models inspect` prints.
#pragma once

#include <string>

#include "cli/tools/inspect_model.h"

namespace baton {

std::string ToText(const std::string& path, const ModelReport& report);
// One line without its newline. Sizes in bytes; `config` is null, and `problem` says why, for a model that cannot be
// served.
std::string ToJson(const std::string& path, const ModelReport& report);

}  // namespace baton
