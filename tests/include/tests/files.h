// Where a test finds the project's files, its programs, and data that is not part of the project.
#pragma once

#include <filesystem>
#include <string>

namespace baton::testing {

// The root of the source tree.
std::filesystem::path SourceFolder();

// The folder of baton-router and the other programs: $BATON_BINARY_DIR, or that of this build.
std::filesystem::path BinaryFolder();

// Real models' files and recorded traffic: $BATON_SHARED, or `shared` beside the source tree. A test that wants a file
// of it skips where there is none.
std::filesystem::path SharedFolder();

// The bytes of a file; none when it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

}  // namespace baton::testing
