// SPDX-License-Identifier: Apache-2.0
// The workers that a request names for itself: v1::Pin, checked and with its defaults filled in. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace baton::router {

// Workers are named by their ids.
struct Pin {
  std::string prefill = {};  // equal to `decode`: the decode worker computes the prompt
  std::string decode = {};
  std::string migrate_to = {};        // empty: the sequence stays
  uint32_t migrate_after_tokens = 0;  // output tokens; at least 1 with `migrate_to`

  bool local() const { return prefill == decode; }
};

}  // namespace baton::router
