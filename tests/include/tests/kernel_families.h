// SPDX-License-Identifier: Apache-2.0
// The kernel families of CreateCpuBackend, and which of them the CPU of this machine can run.
//
// The CPU's features come from /proc/cpuinfo and not from the code under test. If the code under test refuses a family
// by mistake, the family's tests therefore fail instead of being skipped.
#pragma once

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace baton::testing {

inline std::vector<std::string> KernelFamilies() { return {"scalar", "avx2", "avx512", "avx512-vnni", "avx512-bf16"}; }

// Returns the features, by their names in /proc/cpuinfo, that the family needs.
inline std::vector<std::string> FeaturesOf(const std::string& family) {
  std::vector<std::string> features;
  if (family == "avx2") features = {"avx2", "f16c", "fma"};
  if (family.starts_with("avx512")) features = {"avx512bw", "avx512dq", "avx512f", "avx512vl", "fma"};
  if (family == "avx512-vnni" || family == "avx512-bf16") features.emplace_back("avx512_vnni");
  if (family == "avx512-bf16") features.emplace_back("avx512_bf16");
  return features;
}

// Returns the features of this CPU whose registers the kernel saves.
inline std::set<std::string> CpuFeatures() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

// Returns why this CPU cannot run the family: the reason to skip a test. Empty when the family must run.
inline std::string WhyItCannotRun(const std::string& family) {
  static const std::set<std::string> present = CpuFeatures();
  std::string missing;
  for (const std::string& feature : FeaturesOf(family)) {
    if (!present.contains(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  }
  return missing.empty() ? "" : "kernels \"" + family + "\": this CPU lacks " + missing;
}

inline std::string AsTestName(std::string family) {
  std::replace(family.begin(), family.end(), '-', '_');
  return family;
}

}  // namespace baton::testing

// Skips the test, naming the family and the reason, when this CPU lacks the family's features.
#define SKIP_WITHOUT_CPU_FOR(family) \
  if (const std::string why = ::baton::testing::WhyItCannotRun(family); !why.empty()) GTEST_SKIP() << why
