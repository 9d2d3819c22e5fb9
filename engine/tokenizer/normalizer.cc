#include "engine/tokenizer/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strings.h"
#include "engine/tokenizer/json_node.h"

namespace baton {
namespace {

class Nfc : public Normalizer {
 public:
  static absl::StatusOr<std::unique_ptr<const Normalizer>> Create() {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* const icu = icu::Normalizer2::getNFCInstance(error);
    if (U_FAILURE(error)) return absl::InternalError(Concat("ICU has no NFC: ", u_errorName(error)));
    return std::make_unique<Nfc>(icu);
  }

  explicit Nfc(const icu::Normalizer2* icu) : icu_(icu) {}

  std::string_view Apply(std::string_view text, std::deque<std::string>& storage) const override {
    const icu::StringPiece input(text.data(), static_cast<int32_t>(text.size()));
    UErrorCode error = U_ZERO_ERROR;
    if (icu_->isNormalizedUTF8(input, error)) return text;
    std::string& normal = storage.emplace_back();
    icu::StringByteSink<std::string> sink(&normal);
    icu_->normalizeUTF8(0, input, sink, nullptr, error);
    return normal;
  }

 private:
  const icu::Normalizer2* const icu_;  // ICU's own
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Normalizer>> LoadNormalizer(const std::optional<JsonNode>& json) {
  if (!json) return nullptr;
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json->GetString("type"));
  if (type == "NFC") return Nfc::Create();
  if (type != "Sequence") return json->Unsupported(Concat("normalizer '", type, "'"));
  BATON_ASSIGN_OR_RETURN(const JsonNode list, json->Get("normalizers"));
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, list.Items());
  // What is normal stays normal, so several that do something are one.
  std::unique_ptr<const Normalizer> normalizer;
  for (const JsonNode& item : items) {
    BATON_ASSIGN_OR_RETURN(std::unique_ptr<const Normalizer> next, LoadNormalizer(item));
    if (next != nullptr) normalizer = std::move(next);
  }
  return normalizer;
}

}  // namespace baton
