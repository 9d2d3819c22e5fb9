// SPDX-License-Identifier: Apache-2.0
#include "common/arguments.h"

#include <algorithm>
#include <string_view>

#include "common/nearest_word.h"
#include "common/strings.h"

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

std::string UnknownOption(const std::string& argument, const std::vector<std::string>& known) {
  const std::string option = argument.substr(0, argument.find('='));
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  return Concat("unknown option ", option, DidYouMean(name, known, "--"));
}

}  // namespace baton
