// SPDX-License-Identifier: Apache-2.0
#include "common/cgroup.h"

#include <fstream>

#include "common/strings.h"

namespace baton {

std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const std::string& root) {
  std::vector<CgroupFolder> folders;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path" (v1), "0::/path" (v2)
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = Concat(",", line.substr(first + 1, second - first - 1), ",");
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(Concat(",", controller, ",")) == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    if (path.empty() || path.front() != '/') continue;
    if (path.back() == '/') path.pop_back();
    const std::string mount = is_v2 ? root + "/sys/fs/cgroup" : Concat(root, "/sys/fs/cgroup/", controller);
    while (true) {
      folders.push_back({mount + path, is_v2});
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return folders;
}

}  // namespace baton
