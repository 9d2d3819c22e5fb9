// SPDX-License-Identifier: Apache-2.0
// One schema for a program's options. Each option is a flag on the command line and a key in a YAML file, with one
// name, one default and one line of help. The command line wins over the file.
//
//   OptionSet set("baton-decode", "Serves the decode phase.");
//   set.Add("listen", &options.listen, "host:port for gRPC");
//   set.Add("peer-timeout", &options.peer_timeout, "declare a silent peer dead after this");
//   set.AddList("cpus", &options.cpus, "...");
//   return set.RunProgram(argc, argv, [&] { return Serve(options); });
//
// `--config FILE`, `--help` and `--version` are there without being added. In YAML: `peer-timeout: 3s`; groups are
// written with their dot: "log.level" is `--log.level` and `log: {level: info}`. Durations as "250ms", "3s"; sizes as
// "512MiB", "2GiB". INVALID_ARGUMENT names the option, the value and the expected value: for unknown flags and keys,
// bad values, and a missing file. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/option_schema.h"
#include "common/strings.h"

namespace baton {

// A size in bytes, which users write with a unit.
struct ByteSize {
  uint64_t bytes = 0;
};

// Adds the option's name to the beginning of an error that its value caused.
inline absl::Status OfOption(std::string_view option, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), Concat(option, ": ", status.message()));
}
template <typename T>
absl::StatusOr<T> OfOption(std::string_view option, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return OfOption(option, result.status());
}

class OptionSet {
 public:
  OptionSet(std::string_view program, std::string_view description) : program_(program), description_(description) {}
  OptionSet(const OptionSet&) = delete;
  OptionSet& operator=(const OptionSet&) = delete;

  // Adds an option. `value` holds the default, receives the given value, and must outlive Parse. `--help` shows the
  // default unless the default is empty: then `help` says what an empty value means.
  void Add(std::string_view name, std::string* value, std::string_view help);
  void Add(std::string_view name, int* value, std::string_view help, int min = 0, int max = INT32_MAX);
  void Add(std::string_view name, double* value, std::string_view help, double min, double max);
  void Add(std::string_view name, absl::Duration* value, std::string_view help,
           absl::Duration min = absl::ZeroDuration(), absl::Duration max = absl::Hours(24));
  void Add(std::string_view name, ByteSize* value, std::string_view help);
  // Adds an option whose value is one of `choices`.
  void AddChoice(std::string_view name, std::string* value, std::vector<std::string> choices, std::string_view help);
  // Adds an option with several values: separated by commas or repeated on the command line, a list in YAML.
  void AddList(std::string_view name, std::vector<std::string>* value, std::string_view help);
  void AddList(std::string_view name, std::vector<int>* value, std::string_view help, int min = 0, int max = INT32_MAX);

  // A name for values of other options.
  struct Preset {
    std::string name;
    std::string help;
    std::vector<std::pair<std::string, std::string>> values;  // option and text, in the form of the command line
  };
  // Adds an option that chooses one of `presets`. A preset's values replace the defaults: an option that is given in
  // the file or on the command line wins. Call it once, after the options that the presets name.
  void AddPresets(std::string_view name, std::string* value, std::vector<Preset> presets);

  // kAnswered: --help or --version was given, the answer is printed, and there is nothing to run.
  enum class Outcome { kRun, kAnswered };
  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv);

  // The main function of a server: parses, then calls `run`. Prints the error of either. Returns the exit status.
  int RunProgram(int argc, const char* const* argv, absl::FunctionRef<absl::Status()> run);

 private:
  const std::string program_;
  const std::string description_;
  absl::Status ApplyPreset() const;

  option_schema::Schema schema_;
  std::vector<Preset> presets_;
  const std::string* preset_ = nullptr;  // the name of the chosen one; empty: none
};

}  // namespace baton
