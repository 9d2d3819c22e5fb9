#include "tests/files.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace baton::testing {
namespace {

std::filesystem::path FromEnvironment(const char* variable, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): tests do not set variables
  return value != nullptr ? std::filesystem::path(value) : otherwise;
}

}  // namespace

std::filesystem::path SourceFolder() { return BATON_SOURCE_DIR; }
std::filesystem::path BinaryFolder() { return FromEnvironment("BATON_BINARY_DIR", BATON_BINARY_DIR); }
std::filesystem::path SharedFolder() {
  return FromEnvironment("BATON_SHARED", SourceFolder().parent_path() / "shared");
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

}  // namespace baton::testing
