// SPDX-License-Identifier: Apache-2.0
#include "common/version.h"

namespace baton {

std::string_view BatonVersion() { return BATON_VERSION; }

}  // namespace baton
