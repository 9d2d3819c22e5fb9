// SPDX-License-Identifier: Apache-2.0
// Baton's version, from the CMake project.
#pragma once

#include <string_view>

namespace baton {

// Returns, for instance, "0.1.0".
std::string_view BatonVersion();

}  // namespace baton
