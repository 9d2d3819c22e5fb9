// SPDX-License-Identifier: Apache-2.0
#include "common/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "common/arguments.h"
#include "common/cpus.h"

namespace baton {

v1::ProcessFacts ReadProcessFacts(int threads) {
  v1::ProcessFacts facts;
  facts.set_version(std::string(BatonVersion()));
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) == 0) facts.set_host(host);
  facts.set_cpus(static_cast<uint32_t>(UsableCpus()));
  facts.set_threads(static_cast<uint32_t>(threads));
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.set_max_open_files(limit.rlim_cur);
  return facts;
}

}  // namespace baton
