// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/block_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/formats/half.h"
#include "tests/files.h"

namespace baton {
namespace {

using ::testing::ElementsAre;

constexpr TensorType kTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ8_0,
                                 TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
                                 TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

std::vector<float> Decode(TensorType type, const std::string& blocks) {
  const TensorTypeInfo info = InfoOf(type);
  std::vector<float> values(blocks.size() / info.block_bytes * info.block_values);
  DecodeBlocks(type, reinterpret_cast<const std::byte*>(blocks.data()), values.size(), values.data());
  return values;
}

std::string Encode(TensorType type, const std::vector<float>& values) {
  std::string blocks(BytesOf(type, values.size()), '\0');
  EXPECT_TRUE(EncodeBlocks(type, values, reinterpret_cast<std::byte*>(blocks.data())));
  return blocks;
}

// The bytes of 1.0 and 0.5 as f16.
constexpr char kOne[] = "\x00\x3C";
constexpr char kHalf[] = "\x00\x38";
std::string Half(const char* bytes) { return {bytes, 2}; }

TEST(DecodeBlocks, ReadsFloats) {
  EXPECT_THAT(Decode(TensorType::kF32, std::string("\x00\x00\x20\xC1", 4)), ElementsAre(-10));
  EXPECT_THAT(Decode(TensorType::kF16, Half(kHalf) + std::string("\x01\x00", 2)), ElementsAre(0.5f, 0x1p-24f));
  EXPECT_THAT(Decode(TensorType::kBF16, std::string("\x20\xC1", 2)), ElementsAre(-10));
}

TEST(DecodeBlocks, ReadsEachCodeOfTheBlocksOf32Values) {
  std::string codes(16, '\0');
  codes[0] = '\x2F';                               // value 0 has code 15, value 16 code 2
  codes[15] = '\x40';                              // value 15 has code 0, value 31 code 4
  const std::string fifth("\x01\x00\x00\x80", 4);  // set for values 0 and 31

  const std::vector<float> q4_0 = Decode(TensorType::kQ4_0, Half(kHalf) + codes);
  EXPECT_EQ(q4_0[0], 3.5f);
  EXPECT_EQ(q4_0[16], -3);
  EXPECT_EQ(q4_0[15], -4);
  EXPECT_EQ(q4_0[31], -2);
  const std::vector<float> q4_1 = Decode(TensorType::kQ4_1, Half(kHalf) + Half(kOne) + codes);
  EXPECT_EQ(q4_1[0], 8.5f);
  EXPECT_EQ(q4_1[1], 1);
  EXPECT_EQ(q4_1[31], 3);
  const std::vector<float> q5_0 = Decode(TensorType::kQ5_0, Half(kHalf) + fifth + codes);
  EXPECT_EQ(q5_0[0], 7.5f);
  EXPECT_EQ(q5_0[1], -8);
  EXPECT_EQ(q5_0[31], 2);
  const std::vector<float> q5_1 = Decode(TensorType::kQ5_1, Half(kHalf) + Half(kOne) + fifth + codes);
  EXPECT_EQ(q5_1[0], 16.5f);
  EXPECT_EQ(q5_1[16], 2);
  EXPECT_EQ(q5_1[31], 11);

  std::string bytes(32, '\0');
  bytes[0] = '\x7F';
  bytes[31] = '\x80';
  const std::vector<float> q8_0 = Decode(TensorType::kQ8_0, Half(kHalf) + bytes);
  EXPECT_EQ(q8_0[0], 63.5f);
  EXPECT_EQ(q8_0[31], -64);
}

TEST(DecodeBlocks, UnpacksTheScalesOfQ4KAndQ5K) {
  // Scales: 1 (byte 0), 2 (byte 1), and 5 | 1 << 4 = 21 for group 4 (byte 8, upper bits of byte 0). Minimums: 2 for
  // group 0 (byte 4), and 3 | 2 << 4 = 35 for group 4 (byte 8, upper bits of byte 4).
  std::string scales(12, '\0');
  scales[0] = '\x41';
  scales[1] = '\x02';
  scales[4] = '\x82';
  scales[8] = '\x35';
  std::string codes(128, '\0');
  codes[0] = '\x21';   // group 0 has 1, group 1 has 2
  codes[64] = '\x03';  // group 4 has 3
  const std::vector<float> q4 = Decode(TensorType::kQ4_K, Half(kOne) + Half(kHalf) + scales + codes);
  EXPECT_EQ(q4[0], 1 * 1 - 0.5f * 2);
  EXPECT_EQ(q4[32], 2 * 2);
  EXPECT_EQ(q4[128], 21 * 3 - 0.5f * 35);
  EXPECT_EQ(q4[129], -0.5f * 35);

  std::string fifth(32, '\0');
  fifth[0] = '\x10';  // set for value 0 of group 4
  const std::vector<float> q5 = Decode(TensorType::kQ5_K, Half(kOne) + Half(kHalf) + scales + fifth + codes);
  EXPECT_EQ(q5[0], 1 * 1 - 0.5f * 2);
  EXPECT_EQ(q5[128], 21 * 19 - 0.5f * 35);
}

TEST(DecodeBlocks, JoinsTheLowAndUpperBitsOfQ6K) {
  std::string low(128, '\0');
  std::string upper(64, '\0');
  std::string scales(16, '\1');
  low[0] = '\x5A';     // value 0 has 10, value 64 has 5
  low[127] = '\x20';   // value 255 has 2
  upper[0] = '\x23';   // value 0 has 3, value 64 has 2
  upper[63] = '\x40';  // value 255 has 1
  scales[15] = '\xFE';
  const std::vector<float> values = Decode(TensorType::kQ6_K, low + upper + scales + Half(kHalf));
  EXPECT_EQ(values[0], 0.5f * (10 + 48 - 32));
  EXPECT_EQ(values[64], 0.5f * (5 + 32 - 32));
  EXPECT_EQ(values[255], 0.5f * -2 * (2 + 16 - 32));
  EXPECT_EQ(values[1], 0.5f * -32);
}

// For each type a file of blocks, and one of the values that they hold.
void ExpectTheValuesOf(const std::filesystem::path& folder) {
  for (const TensorType type : kTypes) {
    if (type == TensorType::kF32) continue;
    const std::string name(InfoOf(type).name);
    const std::string expected = testing::ReadFile(folder / (name + ".f32.bin"));
    const std::vector<float> values = Decode(type, testing::ReadFile(folder / (name + ".blocks.bin")));
    ASSERT_FALSE(values.empty()) << name;
    ASSERT_EQ(values.size() * sizeof(float), expected.size()) << name;
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0) << name;
  }
}

// tests/golden/make_blocks.py decodes by the definition of each type, in float64.
TEST(DecodeBlocks, AgreesBitForBitWithTheDefinitions) {
  ExpectTheValuesOf(testing::SourceFolder() / "tests/golden/blocks");
}

TEST(DecodeBlocks, AgreesBitForBitWithAnotherProgram) {
  const auto folder = testing::SharedData("gguf_quants");
  if (!folder.ok()) GTEST_SKIP() << folder.status().message();
  ExpectTheValuesOf(*folder);
}

TEST(EncodeBlocks, RoundsToTheNearestCodeTiesToEven) {
  std::vector<float> values(32);
  values[0] = 127;  // scale 1
  values[1] = 0.5f;
  values[2] = 1.5f;
  values[3] = -2.5f;
  values[4] = 3.49f;
  const std::string q8 = Encode(TensorType::kQ8_0, values);
  EXPECT_EQ(q8.substr(0, 7), Half(kOne) + std::string("\x7F\x00\x02\xFE\x03", 5));

  values[0] = -8;  // scale 1
  values[1] = 7;
  values[3] = 8;
  const std::string q4 = Encode(TensorType::kQ4_0, values);
  EXPECT_EQ(q4.substr(0, 2), Half(kOne));
  EXPECT_EQ(q4.substr(2, 4), std::string("\x80\x8F\x8A\x8F", 4));  // 8 is clamped to 7, the last code
  values[0] = 16;                                                  // scale -2
  EXPECT_EQ(Decode(TensorType::kQ4_0, Encode(TensorType::kQ4_0, values))[0], 16);
}

TEST(EncodeBlocks, KeepsTheErrorWithinHalfAScale) {
  std::mt19937 random(1);
  for (const float scale : {1e-7f, 1e-3f, 1.0f, 1e4f}) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(1600);
    for (float& value : values) value = normal(random);
    for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
      const std::vector<float> decoded = Decode(type, Encode(type, values));
      for (size_t block = 0; block < values.size(); block += 32) {
        float greatest = 0;
        for (size_t i = block; i < block + 32; ++i) greatest = std::max(greatest, std::fabs(values[i]));
        // Q4_0 clamps +8 to 7, an error of a whole scale. The constant allows for the rounding of a subnormal scale.
        const float step = type == TensorType::kQ8_0 ? greatest / 127 / 2 : greatest / 8;
        for (size_t i = block; i < block + 32; ++i) {
          EXPECT_NEAR(decoded[i], values[i], step * 1.01f + 0x1p-25f * 128) << InfoOf(type).name << " " << scale;
        }
      }
    }
  }
}

TEST(EncodeBlocks, KeepsZerosExactly) {
  for (const TensorType type : kTypes) {
    if (!CanEncode(type)) continue;
    EXPECT_EQ(Decode(type, Encode(type, std::vector<float>(64))), std::vector<float>(64)) << InfoOf(type).name;
  }
}

TEST(EncodeBlocks, RefusesValuesThatAreNotFiniteOrTooLarge) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const TensorType type : kTypes) {
    if (!CanEncode(type)) continue;
    std::byte out[256];
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(32);
      values[17] = bad;
      EXPECT_FALSE(EncodeBlocks(type, values, out)) << InfoOf(type).name << " " << bad;
    }
    const bool wide = type == TensorType::kF32 || type == TensorType::kBF16;
    EXPECT_EQ(EncodeBlocks(type, std::vector<float>(32, 1e30f), out), wide) << InfoOf(type).name;
  }
}

TEST(Half, ConversionToFloatAndBackIsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(value), half);
    }
    const float wide = BFloat16ToFloat(half);
    if (!std::isnan(wide)) {
      EXPECT_EQ(FloatToBFloat16(wide), half);
    }
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {
    const float below = HalfToFloat(static_cast<uint16_t>(bits));
    const float above = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (below + above) / 2;
    EXPECT_EQ(FloatToHalf(middle), bits + bits % 2);
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(FloatToHalf(-std::nextafter(middle, above)), 0x8000 | (bits + 1));
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520), 0x7C00);
  EXPECT_EQ(FloatToBFloat16(1.00390625f), 0x3F80);  // a tie
  EXPECT_EQ(FloatToBFloat16(1.01171875f), 0x3F82);  // a tie
  EXPECT_EQ(FloatToBFloat16(1.0039064f), 0x3F81);
}

}  // namespace
}  // namespace baton
