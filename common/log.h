// SPDX-License-Identifier: Apache-2.0
// Structured logs: one line per event, `key=value` fields, on stderr.
//
//   Log(LogLevel::kInfo, "handoff.granted", {{"request", id.ToString()}, {"pages", pages}});
//   2026-11-20T16:20:51.123456Z INFO  prefill-0 handoff.granted request=4f… pages=12
//
// Events are named "<part>.<what happened>". Lines about a request carry its id; nothing is logged per token. As text,
// values that hold more than plain visible characters are quoted like JSON strings. As JSON, one object per line with
// time, level, process, event and the fields.
// Thread-safe.
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace baton {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view key;
  std::string value;
  bool bare = false;  // a number, true or false: no quotes in JSON

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), bare(true) {}
  LogField(std::string_view k, absl::Duration v) : key(k), value(absl::FormatDuration(v)) {}
  LogField(std::string_view k, const absl::Status& v) : key(k), value(v.ToString()) {}
  template <std::integral T>
  LogField(std::string_view k, T v) : key(k), value(absl::StrCat(v)), bare(true) {}
  template <std::floating_point T>
  LogField(std::string_view k, T v) : key(k), value(absl::StrCat(v)), bare(std::isfinite(v)) {}
};

struct LogOptions {
  std::string level = "info";   // debug | info | warning | error
  std::string format = "text";  // text | json
};

// Call once, early; `process` is repeated in every line. INVALID_ARGUMENT names the option.
absl::Status InitLogging(const LogOptions& options, std::string_view process);

// Returns whether every line on stderr should be JSON.
bool LogsAsJson();

// Returns whether lines of `level` are written: for lines that cost something to make.
bool LogEnabled(LogLevel level);

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace baton
