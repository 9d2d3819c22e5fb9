// SPDX-License-Identifier: Apache-2.0
// The control groups of this process, version 1 and 2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

struct CgroupFolder {
  std::string path;
  bool is_v2 = false;
};

// Returns the folders of the groups that limit this process's `controller`, such as "memory": the process's own group
// and those above. A container may see its group as the root, so that some folders do not exist. `root` is for tests.
std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const std::string& root = "");

}  // namespace baton
