// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, removed with all that is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace baton::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "baton_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view content) const {
    std::filesystem::remove(path_ / name);  // a file written over would be flushed to the disk
    std::ofstream(path_ / name, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  // Readers see the old file or the new one.
  void Replace(const std::string& name, std::string_view content) const {
    Write(name + ".new", content);
    std::filesystem::rename(path_ / (name + ".new"), path_ / name);
  }
  // The files of `folder`, but none of its folders.
  void CopyFrom(const std::filesystem::path& folder) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_regular_file()) std::filesystem::copy_file(entry.path(), path_ / entry.path().filename());
    }
  }

 private:
  std::filesystem::path path_;
};

}  // namespace baton::testing
