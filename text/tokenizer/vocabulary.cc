#include "text/tokenizer/vocabulary.h"

#include "common/strings.h"

namespace baton {

absl::Status Vocabulary::Set(int64_t id, std::string_view bytes, bool is_special) {
  if (id < 0 || id >= kMaxSize) {
    return absl::InvalidArgumentError(Concat("token id ", id, " is outside 0..", kMaxSize - 1));
  }
  if (text_.size() + bytes.size() > UINT32_MAX)
    return absl::InvalidArgumentError("the vocabulary exceeds 4 GiB of text");
  if (id >= size()) entries_.resize(id + 1);
  entries_[id] = {.offset = static_cast<uint32_t>(text_.size()),
                  .length = static_cast<uint32_t>(bytes.size()),
                  .exists = true,
                  .is_special = is_special};
  text_.append(bytes);
  return absl::OkStatus();
}

}  // namespace baton
