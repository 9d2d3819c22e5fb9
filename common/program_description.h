// SPDX-License-Identifier: Apache-2.0
// The hidden flag --describe of every program: prints the program's commands and options as JSON. Manual pages, shell
// completions and docs/configuration.md are made of this JSON (deploy/reference).
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace baton {

// Adds --describe to `app`. The flag ends the parse as --version does, with the JSON as the answer. `app` must outlive
// the parse, and may get options and commands after the call.
void AddDescribeFlag(CLI::App& app);

}  // namespace baton
