// SPDX-License-Identifier: Apache-2.0
#include "common/arguments.h"

#include <string_view>

namespace baton {

std::vector<std::string> ReversedArguments(int argc, const char* const* argv) {
  std::vector<std::string> args;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--") && arg.ends_with('=')) {
      args.emplace_back();
      args.emplace_back(arg.substr(0, arg.size() - 1));
    } else {
      args.emplace_back(arg);
    }
  }
  return args;
}

}  // namespace baton
