// UTF-8 checks for what the command line takes in and what JSON lines give out.
#pragma once

#include <string>
#include <string_view>

namespace baton {

bool IsValidUtf8(std::string_view text);

// `text` with U+FFFD in place of every byte that is not part of a valid sequence.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace baton
