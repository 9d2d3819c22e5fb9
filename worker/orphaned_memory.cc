// SPDX-License-Identifier: Apache-2.0
#include "worker/orphaned_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/time/clock.h"

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "ucx_shm_posix_";  // a random number follows: names are unique on the machine

// Returns the files of this user that are old enough.
std::vector<OrphanedFile> OldFilesOf(const OrphanSearch& search) {
  std::vector<OrphanedFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(search.folder, error)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    struct stat info{};
    if (lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid()) continue;
    if (absl::Now() - absl::TimeFromTimespec(info.st_mtim) < search.min_age) continue;
    files.push_back({entry.path().string(), static_cast<uint64_t>(info.st_size)});
  }
  return files;
}

bool MapsFile(const fs::path& process, const std::string& name) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  std::error_code error;
  for (const fs::directory_entry& fd : fs::directory_iterator(process / "fd", error)) {
    const fs::path target = fs::read_symlink(fd.path(), error);
    if (target.string().find(name) != std::string::npos) return true;
  }
  return false;
}

bool IsInUse(const std::string& proc, const std::string& name) {
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator(proc, error)) {
    const std::string pid = process.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(pid[0])) != 0 && MapsFile(process.path(), name)) return true;
  }
  return false;
}

}  // namespace

std::vector<OrphanedFile> RemoveOrphanedMemory(const OrphanSearch& search) {
  std::vector<OrphanedFile> removed;
  for (OrphanedFile& file : OldFilesOf(search)) {
    const bool orphaned = !IsInUse(search.proc, fs::path(file.path).filename().string());
    if (orphaned && unlink(file.path.c_str()) == 0) removed.push_back(std::move(file));
  }
  return removed;
}

}  // namespace baton
