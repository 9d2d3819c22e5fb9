// Chat templates, parsed and rendered.
#include <string>

#include "engine/tokenizer/chat_template.h"
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  const auto chat_template = ChatTemplate::Parse(fuzz::Text(data, size));
  fuzz::CheckRefusal(chat_template.status());
  if (!chat_template.ok()) return 0;
  // A template may raise an exception of its own with an empty text: only the code is ours.
  const auto text =
      (*chat_template)
          ->Render({{"system", "Be brief."}, {"user", "Hello \xFF"}, {"assistant", ""}, {"user", "{{ 1 }}"}}, "<s>",
                   "</s>", true);
  fuzz::Check(text.ok() || absl::IsInvalidArgument(text.status()) || absl::IsUnimplemented(text.status()) ||
                  absl::IsResourceExhausted(text.status()),
              text.status().ToString());
  return 0;
}
