// SPDX-License-Identifier: Apache-2.0
// Implements the functions that templates can call, and the argument checks of runtime.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/status_macros.h"
#include "common/strings.h"
#include "text/jinja/operators.h"
#include "text/jinja/runtime.h"
#include "text/utf8.h"

namespace baton::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // MAX_RANGE of Jinja's sandbox

absl::StatusOr<Value> RaiseException(Runtime& runtime, const Value&, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"message"}, 1));
  BATON_ASSIGN_OR_RETURN(const Value message, ToText(runtime, *bound[0]));
  runtime.raised_by_template = true;
  return absl::InvalidArgumentError(ToAbsl(message.AsString()));
}

absl::StatusOr<Value> Range(Runtime& runtime, const Value&, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"start", "stop", "step"}, 1));
  int64_t start = 0;
  BATON_ASSIGN_OR_RETURN(int64_t stop, ExpectInt(*bound[0], "range's argument"));
  if (bound[1]) {
    start = stop;
    BATON_ASSIGN_OR_RETURN(stop, ExpectInt(*bound[1], "range's stop"));
  }
  BATON_ASSIGN_OR_RETURN(const int64_t step, IntOr(bound[2], 1, "range's step"));
  if (step == 0) return absl::InvalidArgumentError("range's step must not be zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange) {
      return absl::ResourceExhaustedError(Concat("a range must have at most ", kMaxRange, " items"));
    }
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return runtime.heap.NewList(std::move(items));
}

// Returns the entries of dict(mapping, name=value, ...) or namespace(mapping, name=value, ...).
absl::StatusOr<std::vector<std::pair<Value, Value>>> Entries(Runtime& runtime, const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) return absl::InvalidArgumentError("expected at most one mapping");
  if (!arguments.positional.empty()) {
    const Value& mapping = arguments.positional[0];
    if (!mapping.is(Kind::kDict)) {
      return absl::InvalidArgumentError(Concat("expected a mapping, got ", TypeName(mapping.kind())));
    }
    BATON_RETURN_IF_ERROR(runtime.heap.Step(mapping.AsDict().entries.size() * 2 * sizeof(Value)));
    entries = mapping.AsDict().entries;
  }
  for (const auto& [name, value] : arguments.named) {
    bool exists = false;
    for (auto& [key, slot] : entries) {
      if (!key.is(Kind::kString) || key.AsString() != name) continue;
      slot = value;
      exists = true;
    }
    if (!exists) entries.emplace_back(Value::String(name), value);
  }
  return entries;
}

absl::StatusOr<Value> MakeDict(Runtime& runtime, const Value&, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(auto entries, Entries(runtime, arguments));
  return runtime.heap.NewDict(std::move(entries));
}

absl::StatusOr<Value> MakeNamespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(auto entries, Entries(runtime, arguments));
  for (const auto& [key, value] : entries) {
    if (!key.is(Kind::kString)) return absl::InvalidArgumentError("attributes of a namespace must have str names");
  }
  BATON_ASSIGN_OR_RETURN(Dict * attributes, runtime.heap.NewNamespace());
  attributes->entries = std::move(entries);
  return Value::OfNamespace(attributes);
}

// Like strftime of a Python datetime without time zone: %Z and %z are empty, %f has six digits.
std::string FormatDatetime(std::string_view format, absl::Time time) {
  const absl::TimeZone::CivilInfo civil = absl::LocalTimeZone().At(time);
  std::string known;
  while (!format.empty()) {
    const size_t length = format[0] == '%' ? std::min<size_t>(2, format.size()) : 1;
    const std::string_view conversion = format.substr(0, length);
    format.remove_prefix(length);
    if (conversion == "%f") {
      absl::StrAppendFormat(&known, "%06d", absl::ToInt64Microseconds(civil.subsecond));
    } else if (conversion != "%Z" && conversion != "%z") {
      known += conversion;
    }
  }
  return absl::FormatTime(known, time, absl::LocalTimeZone());
}

absl::StatusOr<Value> StrftimeNow(Runtime& runtime, const Value&, const Arguments& arguments) {
  BATON_ASSIGN_OR_RETURN(const auto bound, Bind(arguments, {"format"}, 1));
  BATON_ASSIGN_OR_RETURN(const std::string_view format, ExpectString(*bound[0], "a time format"));
  // A conversion of two bytes gives at most some dozen bytes.
  BATON_RETURN_IF_ERROR(runtime.heap.Reserve(format.size() * 32));
  std::string storage;
  return runtime.heap.NewString(std::string(RepairUtf8(FormatDatetime(format, runtime.now), storage)));
}

constexpr Function kFunctions[] = {
    {"raise_exception", RaiseException}, {"range", Range}, {"dict", MakeDict}, {"namespace", MakeNamespace},
    {"strftime_now", StrftimeNow},
};

}  // namespace

const Function* FindFunction(std::string_view name) {
  for (const Function& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

bool IsUnsupportedFunction(std::string_view name) { return name == "cycler" || name == "joiner" || name == "lipsum"; }

absl::StatusOr<Value> BuiltinFn::operator()(Runtime& runtime, const Value& input, const Arguments& arguments) const {
  if (of_arguments_ != nullptr) return of_arguments_(runtime, input, arguments);
  if (arguments.positional.empty() && arguments.named.empty()) return of_input_(runtime, input);
  return absl::InvalidArgumentError("expected no arguments");
}

absl::StatusOr<std::string_view> ExpectString(const Value& value, std::string_view what) {
  if (value.is(Kind::kString)) return value.AsString();
  if (value.is(Kind::kUndefined)) return UndefinedError(value);
  return absl::InvalidArgumentError(Concat(what, " must be a str, not ", TypeName(value.kind())));
}

absl::StatusOr<int64_t> ExpectInt(const Value& value, std::string_view what) {
  if (value.IsInteger()) return value.AsInt();
  if (value.is(Kind::kUndefined)) return UndefinedError(value);
  return absl::InvalidArgumentError(Concat(what, " must be an int, not ", TypeName(value.kind())));
}

absl::StatusOr<std::string_view> StringOr(const std::optional<Value>& value, std::string_view if_absent,
                                          std::string_view what) {
  if (!value) return if_absent;
  return ExpectString(*value, what);
}

absl::StatusOr<int64_t> IntOr(const std::optional<Value>& value, int64_t if_absent, std::string_view what) {
  if (!value) return if_absent;
  return ExpectInt(*value, what);
}

}  // namespace baton::jinja
