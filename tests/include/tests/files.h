// SPDX-License-Identifier: Apache-2.0
// Where a test finds the project's files, its programs, and data that is not part of the project.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::testing {

// The root of the source tree.
std::filesystem::path SourceFolder();

// The folder of baton-router and the other programs: $BATON_BINARY_DIR, or that of this build.
std::filesystem::path BinaryFolder();

// Returns a file or folder of the shared data: real models' files and recorded traffic, which are no part of the
// project (docs/testing.md). $BATON_SHARED says where the data is. NOT_FOUND with the reason to skip a test when the
// variable is not set or there is no such file.
absl::StatusOr<std::filesystem::path> SharedData(std::string_view name);

// The bytes of a file; none when it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

}  // namespace baton::testing
