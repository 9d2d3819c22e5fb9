// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/value.h"

namespace baton::jinja {

std::string_view TypeName(Kind kind) {
  switch (kind) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "None";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return "str";
    case Kind::kList: return "list";
    case Kind::kDict: return "dict";
    case Kind::kNamespace: return "Namespace";
    case Kind::kLoop: return "LoopContext";
    case Kind::kFunction: return "function";
    case Kind::kMethod: return "method";
    case Kind::kMacro: return "Macro";
  }
  return "?";
}

}  // namespace baton::jinja
