// SPDX-License-Identifier: Apache-2.0
// The demo model's files, as a worker delivers them to the router.
#pragma once

#include "tests/files.h"
#include "text/assets/model_assets.h"

namespace baton::router {

inline AssetFiles DemoAssets() {
  AssetFiles files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    files[name] = testing::ReadFile(testing::SourceFolder() / "models/demo-chat" / name);
  }
  return files;
}

}  // namespace baton::router
