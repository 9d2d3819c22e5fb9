// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace baton {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace baton
