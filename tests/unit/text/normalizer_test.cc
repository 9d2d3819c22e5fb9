// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test_tokenizer.h"
#include "tests/status_matchers.h"
#include "text/tokenizer/tokenizer.h"

namespace baton {
namespace {

constexpr char kComposed[] = "caf\u00E9";
constexpr char kDecomposed[] = "cafe\u0301";

// A tokenizer over bytes: decoding the ids of a text gives the normalized text.
std::unique_ptr<Tokenizer> WithNormalizer(const nlohmann::json& normalizer,
                                          const nlohmann::json& added = nlohmann::json::array()) {
  nlohmann::json json = testing::SmallTokenizer();
  json["normalizer"] = normalizer;
  json["added_tokens"] = added;
  auto tokenizer = Tokenizer::Create(json.dump(), "");
  EXPECT_OK(tokenizer);
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::string Normalized(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text, /*add_special_tokens=*/false);
  EXPECT_OK(ids);
  return ids.ok() ? tokenizer.Decode(*ids, /*skip_special_tokens=*/false).value_or("") : "";
}

const nlohmann::json kNfc = {{"type", "NFC"}};

TEST(NormalizerTest, NfcComposesCharacters) {
  const auto tokenizer = WithNormalizer(kNfc);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(Normalized(*tokenizer, kDecomposed), kComposed);
  EXPECT_EQ(Normalized(*tokenizer, kComposed), kComposed);
  EXPECT_EQ(Normalized(*tokenizer, "\u1112\u1161\u11AB"), "\uD55C");    // Hangul
  EXPECT_EQ(Normalized(*tokenizer, "\u212B"), "\u00C5");                // the Angstrom sign, a singleton
  EXPECT_EQ(Normalized(*tokenizer, "q\u0307\u0323"), "q\u0323\u0307");  // marks in canonical order
  EXPECT_EQ(Normalized(*tokenizer, "\uFB01 \u00B2"), "\uFB01 \u00B2");  // compatibility forms stay
  EXPECT_EQ(Normalized(*tokenizer, "cafe\xCC"), "cafe\uFFFD");          // invalid UTF-8 is not composed
  EXPECT_EQ(Normalized(*tokenizer, ""), "");
}

TEST(NormalizerTest, NullAndEmptySequenceKeepTheText) {
  for (const nlohmann::json& none :
       {nlohmann::json(), nlohmann::json{{"type", "Sequence"}, {"normalizers", nlohmann::json::array()}}}) {
    const auto tokenizer = WithNormalizer(none);
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(Normalized(*tokenizer, kDecomposed), kDecomposed);
  }
}

TEST(NormalizerTest, SequenceAppliesItsSteps) {
  const auto tokenizer = WithNormalizer({{"type", "Sequence"}, {"normalizers", nlohmann::json::array({kNfc, kNfc})}});
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(Normalized(*tokenizer, kDecomposed), kComposed);
}

TEST(NormalizerTest, AddedTokensMatchBeforeOrAfterNormalization) {
  nlohmann::json raw = testing::AddedToken(300, kDecomposed);
  raw["normalized"] = false;
  nlohmann::json normalized = testing::AddedToken(301, "re\u0301sume\u0301");
  normalized["normalized"] = true;
  const auto tokenizer = WithNormalizer(kNfc, nlohmann::json::array({raw, normalized}));
  ASSERT_NE(tokenizer, nullptr);

  EXPECT_EQ(tokenizer->Encode(kDecomposed, false).value(), std::vector<TokenId>{300});
  EXPECT_EQ(tokenizer->Encode(kComposed, false).value().size(), 5u);  // no added token matches: five bytes
  EXPECT_EQ(tokenizer->Encode("r\u00E9sum\u00E9", false).value(), std::vector<TokenId>{301});
  EXPECT_EQ(tokenizer->Encode("re\u0301sume\u0301", false).value(), std::vector<TokenId>{301});
}

}  // namespace
}  // namespace baton
