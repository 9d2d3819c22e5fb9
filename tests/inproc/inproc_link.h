// One connection between two InprocNodes.
//
// `mutex` orders writes against the end of the connection: who performs a write holds it and has seen `open`; who ends
// the connection clears `open` under it. After that no write of either side lands, and nothing reads a writer's memory.
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
    PeerId peer{};  // what this end's node calls the other one
  };

  // Ends never change. [0] connected, [1] accepted.
  explicit InprocLink(std::array<End, 2> the_ends) : ends(std::move(the_ends)) {}

  const std::array<End, 2> ends;
  Mutex mutex;
  bool open ABSL_GUARDED_BY(mutex) = true;
};

}  // namespace baton
