// SPDX-License-Identifier: Apache-2.0
// One connection between two InprocNodes.
//
// `mutex` orders writes against the end of the connection. A node checks `open` and writes under the mutex; a node that
// ends the connection clears `open` under the mutex. Afterwards no write lands, and no node reads a writer's memory.
#pragma once

#include <array>
#include <memory>

#include "common/mutex.h"
#include "kvtransfer/transport.h"

namespace baton {

class InprocNode;

struct InprocLink {
  struct End {
    std::weak_ptr<InprocNode> node;
    PeerId peer{};  // the other end's node, by this node's numbering
  };

  // `ends` never change. [0] connected, [1] accepted.
  explicit InprocLink(std::array<End, 2> the_ends) : ends(std::move(the_ends)) {}

  const std::array<End, 2> ends;
  Mutex mutex;
  bool open ABSL_GUARDED_BY(mutex) = true;
};

}  // namespace baton
