// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strings.h"
#include "text/tokenizer/json_node.h"
#include "text/tokenizer/pattern.h"
#include "text/tokenizer/regex.h"
#include "text/utf8.h"

namespace baton {
namespace {

// Bounds the memory of a Replace whose content is longer than its matches.
constexpr size_t kMaxNormalBytes = size_t{1} << 30;

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(const icu::Normalizer2* icu) : icu_(icu) {}

  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const override {
    const icu::StringPiece input(text.data(), static_cast<int32_t>(text.size()));
    UErrorCode error = U_ZERO_ERROR;
    if (icu_->isNormalizedUTF8(input, error)) return text;
    std::string& normal = storage.emplace_back();
    icu::StringByteSink<std::string> sink(&normal);
    icu_->normalizeUTF8(0, input, sink, nullptr, error);
    return normal;
  }

 private:
  const icu::Normalizer2* const icu_;  // owned by ICU, never freed
};

absl::StatusOr<std::unique_ptr<const Normalizer>> LoadUnicodeForm(std::string_view name) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const icu =
      name == "NFC" ? icu::Normalizer2::getNFCInstance(error) : icu::Normalizer2::getNFKCInstance(error);
  if (U_FAILURE(error)) return absl::InternalError(Concat("ICU has no ", name, ": ", u_errorName(error)));
  return std::make_unique<UnicodeForm>(icu);
}

// Lowercases each code point without context, like Rust's char::to_lowercase. So a final sigma is not special.
class Lowercase : public Normalizer {
 public:
  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const override {
    std::string lower;
    lower.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const Utf8Unit unit = ReadUtf8(text.substr(at));
      if (unit.code_point < 0x80) {
        const auto c = static_cast<char>(unit.code_point);
        lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
      } else {
        icu::UnicodeString one(static_cast<UChar32>(unit.code_point));
        one.toLower(icu::Locale::getRoot()).toUTF8String(lower);
      }
      at += unit.length;
    }
    if (lower == text) return text;
    return storage.emplace_back(std::move(lower));
  }
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string_view what) : what_(what) {}
  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const override {
    if (text.empty()) return text;
    return storage.emplace_back(Concat(what_, text));
  }

 private:
  const std::string what_;
};

class Strip : public Normalizer {
 public:
  explicit Strip(Sides sides) : sides_(sides) {}
  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& /*storage*/) const override {
    return StripWhiteSpace(text, sides_);
  }

 private:
  const Sides sides_;
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string_view content) : pattern_(std::move(pattern)), content_(content) {}
  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const override {
    Regex::Matcher matcher(pattern_);
    std::string replaced;
    size_t done = 0;
    for (size_t from = 0; from <= text.size();) {
      BATON_ASSIGN_OR_RETURN(const std::optional<Regex::Span> match, matcher.Find(text, from));
      if (!match) break;
      replaced.append(text.substr(done, match->begin - done)).append(content_);
      if (replaced.size() > kMaxNormalBytes) {
        return absl::ResourceExhaustedError(
            Concat("normalizer: expected a text of at most ", kMaxNormalBytes, " bytes"));
      }
      done = from = match->end;
      // Resume one code point after an empty match, to make progress.
      if (match->end == match->begin) from += from < text.size() ? ReadUtf8(text.substr(from)).length : 1;
    }
    if (done == 0 && replaced.empty()) return text;
    replaced.append(text.substr(done));
    return storage.emplace_back(std::move(replaced));
  }

 private:
  const Regex pattern_;
  const std::string content_;
};

class Chain : public Normalizer {
 public:
  explicit Chain(std::vector<std::unique_ptr<const Normalizer>> steps) : steps_(std::move(steps)) {}
  absl::StatusOr<std::string_view> Apply(std::string_view text, std::deque<std::string>& storage) const override {
    for (const auto& step : steps_) {
      BATON_ASSIGN_OR_RETURN(text, step->Apply(text, storage));
    }
    return text;
  }

 private:
  const std::vector<std::unique_ptr<const Normalizer>> steps_;
};

absl::StatusOr<std::unique_ptr<const Normalizer>> LoadChain(const JsonNode& json) {
  BATON_ASSIGN_OR_RETURN(const std::vector<JsonNode> items, json.GetItems("normalizers"));
  std::vector<std::unique_ptr<const Normalizer>> steps;
  for (const JsonNode& item : items) {
    if (const auto nested = item.Find("type"); nested && nested->value() == "Sequence") {
      return item.Unsupported("a Sequence within a Sequence");
    }
    BATON_ASSIGN_OR_RETURN(std::unique_ptr<const Normalizer> step, LoadNormalizer(item));
    if (step != nullptr) steps.push_back(std::move(step));
  }
  if (steps.empty()) return nullptr;
  return std::make_unique<Chain>(std::move(steps));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Normalizer>> LoadNormalizer(const std::optional<JsonNode>& json) {
  if (!json) return nullptr;
  BATON_ASSIGN_OR_RETURN(const std::string_view type, json->GetString("type"));
  if (type == "Sequence") return LoadChain(*json);
  if (type == "NFC" || type == "NFKC") return LoadUnicodeForm(type);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "Prepend") {
    BATON_ASSIGN_OR_RETURN(const std::string_view what, json->GetString("prepend"));
    return std::make_unique<Prepend>(what);
  }
  if (type == "Strip") {
    BATON_ASSIGN_OR_RETURN(const bool left, json->GetBool("strip_left", true));
    BATON_ASSIGN_OR_RETURN(const bool right, json->GetBool("strip_right", true));
    return std::make_unique<Strip>(Sides{.left = left, .right = right});
  }
  if (type == "Replace") {
    BATON_ASSIGN_OR_RETURN(const JsonNode pattern_json, json->Get("pattern"));
    BATON_ASSIGN_OR_RETURN(Regex pattern, LoadPattern(pattern_json));
    BATON_ASSIGN_OR_RETURN(const std::string_view content, json->GetString("content"));
    return std::make_unique<Replace>(std::move(pattern), content);
  }
  return json->Unsupported(Concat("normalizer '", type, "'"));
}

}  // namespace baton
