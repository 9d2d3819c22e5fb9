// SPDX-License-Identifier: Apache-2.0
#include "tests/files.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

std::filesystem::path FromEnvironment(const char* variable, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): tests do not set variables
  return value != nullptr ? std::filesystem::path(value) : otherwise;
}

}  // namespace

std::filesystem::path SourceFolder() { return BATON_SOURCE_DIR; }
std::filesystem::path BinaryFolder() { return FromEnvironment("BATON_BINARY_DIR", BATON_BINARY_DIR); }

absl::StatusOr<std::filesystem::path> SharedData(std::string_view name) {
  const std::filesystem::path folder = FromEnvironment("BATON_SHARED", "");
  if (folder.empty()) {
    return absl::NotFoundError(absl::StrCat("BATON_SHARED is not set (docs/testing.md): no ", std::string(name)));
  }
  std::filesystem::path path = folder / name;
  if (!std::filesystem::exists(path)) return absl::NotFoundError(absl::StrCat("there is no ", path.string()));
  return path;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

}  // namespace baton::testing
