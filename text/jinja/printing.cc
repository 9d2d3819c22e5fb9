// SPDX-License-Identifier: Apache-2.0
// Implements Python's str() and repr() (operators.h).
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/operators.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

absl::Status AppendRepr(Runtime& runtime, const Value& value, std::string& out);

void AppendQuoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  while (!text.empty()) {
    const Utf8Unit unit = ReadUtf8(text);
    const char32_t c = unit.code_point;
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (IsPrintable(c)) {
      out += text.substr(0, unit.length);
    } else if (c < 0x100) {
      absl::StrAppendFormat(&out, "\\x%02x", uint32_t{c});
    } else if (c < 0x10000) {
      absl::StrAppendFormat(&out, "\\u%04x", uint32_t{c});
    } else {
      absl::StrAppendFormat(&out, "\\U%08x", uint32_t{c});
    }
    text.remove_prefix(unit.length);
  }
  out.push_back(quote);
}

absl::Status AppendListRepr(Runtime& runtime, const List& list, std::string& out) {
  out.push_back(list.is_tuple ? '(' : '[');
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    BATON_RETURN_IF_ERROR(AppendRepr(runtime, list.items[i], out));
  }
  if (list.is_tuple && list.items.size() == 1) out.push_back(',');
  out.push_back(list.is_tuple ? ')' : ']');
  return absl::OkStatus();
}

absl::Status AppendDictRepr(Runtime& runtime, const Dict& dict, std::string& out) {
  out.push_back('{');
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out += ", ";
    BATON_RETURN_IF_ERROR(AppendRepr(runtime, dict.entries[i].first, out));
    out += ": ";
    BATON_RETURN_IF_ERROR(AppendRepr(runtime, dict.entries[i].second, out));
  }
  out.push_back('}');
  return absl::OkStatus();
}

absl::Status AppendRepr(Runtime& runtime, const Value& value, std::string& out) {
  if (value.is(Kind::kUndefined)) {
    out += "Undefined";
    return absl::OkStatus();
  }
  if (!value.is(Kind::kString)) return AppendText(runtime, value, out);
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(value.AsString().size()));
  AppendQuoted(value.AsString(), out);
  return absl::OkStatus();
}

}  // namespace

std::string FormatFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // to_chars gives the shortest digits that read back as the same number: "-1.25e+02".
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string scientific(buffer, end);
  const size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

absl::Status AppendText(Runtime& runtime, const Value& value, std::string& out) {
  const DepthGuard guard(runtime.heap);
  BATON_RETURN_IF_ERROR(guard.status());
  const size_t size_before = out.size();
  switch (value.kind()) {
    case Kind::kUndefined: break;
    case Kind::kNone: out += "None"; break;
    case Kind::kBool: out += value.AsBool() ? "True" : "False"; break;
    case Kind::kInt: Append(out, value.AsInt()); break;
    case Kind::kFloat: out += FormatFloat(value.AsFloat()); break;
    case Kind::kString:
      BATON_RETURN_IF_ERROR(runtime.heap.Reserve(value.AsString().size()));
      out += value.AsString();
      return absl::OkStatus();
    case Kind::kList:
      BATON_RETURN_IF_ERROR(AppendListRepr(runtime, value.AsList(), out));
      return runtime.heap.Reserve(2 * value.AsList().items.size() + 2);
    case Kind::kDict:
      BATON_RETURN_IF_ERROR(AppendDictRepr(runtime, value.AsDict(), out));
      return runtime.heap.Reserve(4 * value.AsDict().entries.size() + 2);
    default: return absl::InvalidArgumentError(Concat("a ", TypeName(value.kind()), " cannot be converted to text"));
  }
  return runtime.heap.Reserve(out.size() - size_before);
}

absl::StatusOr<Value> ToText(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kString)) return value;
  std::string text;
  BATON_RETURN_IF_ERROR(AppendText(runtime, value, text));
  return runtime.heap.NewString(std::move(text));
}

}  // namespace baton::jinja
