// SPDX-License-Identifier: Apache-2.0
// The messages between workers.
#include <google/protobuf/stubs/logging.h>

#include <variant>

#include "fuzz_input.h"
#include "kvtransfer/wire/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  static const google::protobuf::LogSilencer* const silence = new google::protobuf::LogSilencer;
  static_cast<void>(silence);
  const auto message = handoff::Decode(fuzz::Text(data, size));
  fuzz::CheckRefusal(message.status());
  if (!message.ok()) return 0;
  const std::string bytes = std::visit([](const auto& m) { return handoff::Encode(m); }, *message);
  const auto again = handoff::Decode(bytes);
  fuzz::Check(again.ok() && *again == *message, "a message comes back as it was");
  return 0;
}
