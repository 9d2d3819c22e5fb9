// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include "common/strings.h"

namespace baton {

absl::Status Vocabulary::Set(int64_t id, std::string_view bytes, bool is_special) {
  if (id < 0 || id >= kMaxSize) {
    return absl::InvalidArgumentError(Concat("expected a token id from 0 to ", kMaxSize - 1, ", got ", id));
  }
  if (text_.size() + bytes.size() > UINT32_MAX) {
    return absl::InvalidArgumentError("vocabulary: expected tokens of less than 4 GiB in total");
  }
  if (id >= size()) entries_.resize(id + 1);
  entries_[id] = {.offset = static_cast<uint32_t>(text_.size()),
                  .length = static_cast<uint32_t>(bytes.size()),
                  .exists = true,
                  .is_special = is_special};
  text_.append(bytes);
  return absl::OkStatus();
}

}  // namespace baton
