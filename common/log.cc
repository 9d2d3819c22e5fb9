// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "common/mutex.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr std::string_view kColumns[] = {"DEBUG", "INFO ", "WARN ", "ERROR"};

size_t Index(LogLevel level) { return static_cast<size_t>(level); }

// A JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, so that a line is always valid text.
std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool NeedsQuotes(std::string_view value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
           return c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\';
         });
}

std::string TextValue(std::string_view value) { return NeedsQuotes(value) ? Quoted(value) : std::string(value); }

// Where lines go. Never destroyed: threads may log while the process exits.
class Output {
 public:
  static Output& Get() {
    static Output* output = new Output;
    return *output;
  }

  void Configure(LogLevel level, bool json, std::string_view process) {
    MutexLock lock(mutex_);
    process_ = process;
    json_ = json;
    level_.store(level, std::memory_order_relaxed);
  }

  bool json() const {
    MutexLock lock(mutex_);
    return json_;
  }
  bool Wants(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed); }

  void Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    const std::string time = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone());
    MutexLock lock(mutex_);
    logger_.log(spdlog::level::critical, json_ ? Json(time, level, event, fields) : Text(time, level, event, fields));
  }

 private:
  Output() : logger_("baton", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.flush_on(spdlog::level::trace);
  }

  std::string Text(std::string_view time, LogLevel level, std::string_view event,
                   std::initializer_list<LogField> fields) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string line = Concat(time, " ", kColumns[Index(level)], " ", TextValue(process_), " ", event);
    for (const LogField& field : fields) Append(line, " ", field.key, "=", TextValue(field.value));
    return line;
  }

  std::string Json(std::string_view time, LogLevel level, std::string_view event,
                   std::initializer_list<LogField> fields) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string line = Concat("{\"time\":\"", time, "\",\"level\":\"", kNames[Index(level)],
                              "\",\"process\":", Quoted(process_), ",\"event\":", Quoted(event));
    for (const LogField& field : fields) {
      Append(line, ",", Quoted(field.key), ":", field.bare ? field.value : Quoted(field.value));
    }
    return line + "}";
  }

  std::atomic<LogLevel> level_ = LogLevel::kInfo;
  mutable Mutex mutex_;
  spdlog::logger logger_ ABSL_GUARDED_BY(mutex_);
  std::string process_ ABSL_GUARDED_BY(mutex_) = "baton";
  bool json_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::Status InitLogging(const LogOptions& options, std::string_view process) {
  const auto* level = std::find(std::begin(kNames), std::end(kNames), options.level);
  if (level == std::end(kNames)) {
    return absl::InvalidArgumentError(
        Concat("log.level: \"", options.level, "\" is not one of debug, info, warning, error"));
  }
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(Concat("log.format: \"", options.format, "\" is not one of text, json"));
  }
  Output::Get().Configure(static_cast<LogLevel>(level - std::begin(kNames)), options.format == "json", process);
  return absl::OkStatus();
}

bool LogsAsJson() { return Output::Get().json(); }

bool LogEnabled(LogLevel level) { return Output::Get().Wants(level); }

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (Output::Get().Wants(level)) Output::Get().Write(level, event, fields);
}

}  // namespace baton
