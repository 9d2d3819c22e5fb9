// SPDX-License-Identifier: Apache-2.0
// Implements AppendJson (operators.h), for the filter tojson.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/operators.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

void AppendEscaped(char32_t c, bool ensure_ascii, std::string& out) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default: break;
  }
  if (c < 0x20 || (ensure_ascii && c > 0x7F && c < 0x10000)) {
    absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
  } else if (ensure_ascii && c >= 0x10000) {
    const char32_t offset = c - 0x10000;
    absl::StrAppendFormat(&out, "\\u%04x\\u%04x", static_cast<unsigned>(0xD800 + (offset >> 10)),
                          static_cast<unsigned>(0xDC00 + (offset & 0x3FF)));
  } else {
    AppendUtf8(c, out);
  }
}

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style, std::string& out) : runtime_(runtime), style_(style), out_(out) {}

  absl::Status Write(const Value& value) {
    const DepthGuard guard(runtime_.heap);
    BATON_RETURN_IF_ERROR(guard.status());
    BATON_RETURN_IF_ERROR(runtime_.heap.Step());
    switch (value.kind()) {
      case Kind::kNone: return Append("null");
      case Kind::kBool: return Append(value.AsBool() ? "true" : "false");
      case Kind::kInt: return Append(Concat(value.AsInt()));
      case Kind::kFloat: return Append(FloatText(value.AsFloat()));
      case Kind::kString: return WriteString(value.AsString());
      case Kind::kList: return WriteList(value.AsList());
      case Kind::kDict: return WriteDict(value.AsDict());
      case Kind::kUndefined: return UndefinedError(value);
      default:
        return absl::InvalidArgumentError(
            Concat("an object of type ", TypeName(value.kind()), " is not JSON serializable"));
    }
  }

 private:
  static std::string FloatText(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FormatFloat(value);
  }

  absl::Status Append(std::string_view text) {
    BATON_RETURN_IF_ERROR(runtime_.heap.Reserve(text.size()));
    out_ += text;
    return absl::OkStatus();
  }

  absl::Status WriteString(std::string_view text) {
    BATON_RETURN_IF_ERROR(runtime_.heap.Reserve(text.size() + 2));
    const size_t size_before = out_.size();
    out_.push_back('"');
    for (size_t i = 0; i < text.size();) {
      const Utf8Unit unit = ReadUtf8(text.substr(i));
      AppendEscaped(unit.code_point, style_.ensure_ascii, out_);
      i += unit.length;
    }
    out_.push_back('"');
    // Escapes make the output at most six times longer. Account for the growth afterwards.
    return runtime_.heap.Reserve(out_.size() - size_before - std::min(out_.size() - size_before, text.size() + 2));
  }

  absl::Status BreakLine() {
    if (!style_.pretty) return absl::OkStatus();
    BATON_RETURN_IF_ERROR(Append("\n"));
    for (int i = 0; i < level_; ++i) BATON_RETURN_IF_ERROR(Append(style_.indent));
    return absl::OkStatus();
  }

  // Writes `count` items between `brackets`, each with write_item(index).
  template <typename WriteItem>
  absl::Status WriteItems(std::string_view brackets, size_t count, WriteItem write_item) {
    if (count == 0) return Append(brackets);
    BATON_RETURN_IF_ERROR(Append(brackets.substr(0, 1)));
    ++level_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) BATON_RETURN_IF_ERROR(Append(style_.item_separator));
      BATON_RETURN_IF_ERROR(BreakLine());
      BATON_RETURN_IF_ERROR(write_item(i));
    }
    --level_;
    BATON_RETURN_IF_ERROR(BreakLine());
    return Append(brackets.substr(1));
  }

  absl::Status WriteList(const List& list) {
    return WriteItems("[]", list.items.size(), [&](size_t i) { return Write(list.items[i]); });
  }

  // JSON keys are strings. Python's json.dumps writes a scalar key as its JSON text in quotes.
  absl::StatusOr<std::string> KeyText(const Value& key) {
    switch (key.kind()) {
      case Kind::kString: return std::string(key.AsString());
      case Kind::kNone: return "null";
      case Kind::kBool: return key.AsBool() ? "true" : "false";
      case Kind::kInt: return Concat(key.AsInt());
      case Kind::kFloat: return FloatText(key.AsFloat());
      default: return absl::InvalidArgumentError(Concat("a JSON key cannot be a ", TypeName(key.kind())));
    }
  }

  absl::Status WriteDict(const Dict& dict) {
    BATON_RETURN_IF_ERROR(runtime_.heap.Step(dict.entries.size() * sizeof(Value)));
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, value] : dict.entries) {
      BATON_ASSIGN_OR_RETURN(std::string text, KeyText(key));
      entries.emplace_back(std::move(text), &value);
    }
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    return WriteItems("{}", entries.size(), [&](size_t i) -> absl::Status {
      BATON_RETURN_IF_ERROR(WriteString(entries[i].first));
      BATON_RETURN_IF_ERROR(Append(style_.key_separator));
      return Write(*entries[i].second);
    });
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string& out_;
  int level_ = 0;
};

}  // namespace

absl::Status AppendJson(Runtime& runtime, const Value& value, const JsonStyle& style, std::string& out) {
  return Writer(runtime, style, out).Write(value);
}

}  // namespace baton::jinja
