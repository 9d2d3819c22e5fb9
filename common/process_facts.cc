// SPDX-License-Identifier: Apache-2.0
#include "common/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "common/arguments.h"
#include "common/cpus.h"

namespace baton {
namespace {

// Adds the instruction sets that the kernel families need. The compiler's built-in function checks CPUID and which
// registers the operating system saves.
void AddCpuFeatures(v1::ProcessFacts& facts) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) facts.add_cpu_features("avx2");
  if (__builtin_cpu_supports("fma")) facts.add_cpu_features("fma");
  if (__builtin_cpu_supports("f16c")) facts.add_cpu_features("f16c");
  if (__builtin_cpu_supports("avx512f")) facts.add_cpu_features("avx512f");
  if (__builtin_cpu_supports("avx512bw")) facts.add_cpu_features("avx512bw");
  if (__builtin_cpu_supports("avx512vl")) facts.add_cpu_features("avx512vl");
  if (__builtin_cpu_supports("avx512dq")) facts.add_cpu_features("avx512dq");
  if (__builtin_cpu_supports("avx512vnni")) facts.add_cpu_features("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16")) facts.add_cpu_features("avx512bf16");
#endif
}

}  // namespace

v1::ProcessFacts ReadProcessFacts(int threads) {
  v1::ProcessFacts facts;
  facts.set_version(std::string(BatonVersion()));
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) == 0) facts.set_host(host);
  facts.set_cpus(static_cast<uint32_t>(UsableCpus()));
  facts.set_threads(static_cast<uint32_t>(threads));
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.set_max_open_files(limit.rlim_cur);
  AddCpuFeatures(facts);
  return facts;
}

}  // namespace baton
