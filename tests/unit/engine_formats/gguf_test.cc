// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/formats/gguf_fields.h"
#include "engine/formats/gguf_writer.h"
#include "tests/files.h"
#include "tests/gguf_builder.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::GgufBuilder;
using testing::kInvalid;

// The result points into `file`.
absl::StatusOr<GgufFile> ParseFile(const std::string& file) {
  return ParseGguf(std::as_bytes(std::span(file)), "m.gguf");
}

std::string DataOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

TEST(ParseGguf, ReadsTypeShapeAndDataOfEachTensor) {
  GgufBuilder builder;
  builder.Tensor("a", {3, 2}, 0, 0).Tensor("b", {32}, 8, 32).Tensor("c", {256}, 10, 96).Tensor("d", {5}, 77, 192);
  const std::string bytes = builder.File(std::string(24, 'a') + std::string(8, '\0') + std::string(34, 'b') +
                                         std::string(30, '\0') + std::string(84, 'c') + std::string(12, '\0'));
  ASSERT_OK_AND_ASSIGN(const GgufFile file, ParseFile(bytes));
  ASSERT_EQ(file.tensors.size(), 4U);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_THAT(file.tensors[0].shape, ElementsAre(2, 3));  // two rows of three
  EXPECT_EQ(file.tensors[0].type, TensorType::kF32);
  EXPECT_EQ(DataOf(file.tensors[0]), std::string(24, 'a'));
  EXPECT_EQ(file.tensors[1].type, TensorType::kQ8_0);
  EXPECT_EQ(DataOf(file.tensors[1]), std::string(34, 'b'));
  EXPECT_EQ(file.tensors[2].type, std::nullopt);
  EXPECT_EQ(file.tensors[2].type_name, "Q2_K");
  EXPECT_EQ(DataOf(file.tensors[2]), std::string(84, 'c'));
  EXPECT_EQ(file.tensors[3].type, std::nullopt);
  EXPECT_EQ(file.tensors[3].type_name, "type 77");
}

TEST(ParseGguf, AcceptsTensorDataInAnyOrder) {
  GgufBuilder builder;
  builder.Tensor("a", {1}, 0, 64).Tensor("b", {1}, 0, 0);
  const std::string bytes = builder.File("bbbb" + std::string(60, '\0') + "aaaa");
  ASSERT_OK_AND_ASSIGN(const GgufFile file, ParseFile(bytes));
  EXPECT_EQ(DataOf(file.tensors[0]), "aaaa");
  EXPECT_EQ(DataOf(file.tensors[1]), "bbbb");
}

TEST(ParseGguf, ReadsVersion2AndACustomAlignment) {
  GgufBuilder builder(2);
  builder.Uint32("general.alignment", 64).Tensor("a", {1}, 0, 64);
  const std::string bytes = builder.File(std::string(64, '\0') + "aaaa", 64);
  ASSERT_OK_AND_ASSIGN(const GgufFile file, ParseFile(bytes));
  EXPECT_EQ(DataOf(file.tensors[0]), "aaaa");
}

TEST(ParseGguf, RefusesOtherFormatsAndVersions) {
  EXPECT_TRUE(Fails(ParseFile(""), kInvalid, "m.gguf: expected a GGUF file, which starts with \"GGUF\""));
  EXPECT_TRUE(Fails(ParseFile("GGML1234567890123456"), kInvalid, "m.gguf: expected a GGUF file"));
  for (const uint32_t version : {0U, 1U, 4U, 0x03000000U}) {
    EXPECT_TRUE(Fails(ParseFile(GgufBuilder(version).File("")), kInvalid,
                      "m.gguf: expected version 2 or 3 of GGUF, little-endian, got " + std::to_string(version)));
  }
}

TEST(ParseGguf, RefusesAFileTruncatedAtAnyByte) {
  GgufBuilder builder;
  builder.String("general.architecture", "llama").Uint32("llama.block_count", 2).Strings("tokens", {"a", "b"});
  builder.Tensor("a", {8}, 0, 0).Tensor("b", {1}, 1, 32);
  const std::string file = builder.File(std::string(34, 'x'));
  ASSERT_OK(ParseFile(file));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(ParseFile(file.substr(0, size)).ok()) << size;
}

TEST(ParseGguf, RefusesCountsThatTheFileCannotHold) {
  GgufBuilder many_tensors;
  many_tensors.tensor_count = 1000;
  EXPECT_TRUE(Fails(ParseFile(many_tensors.File("")), kInvalid, "as many as the file has room for, got 1000"));
  GgufBuilder much_metadata;
  much_metadata.metadata_count = UINT64_MAX;
  EXPECT_TRUE(Fails(ParseFile(much_metadata.File("")), kInvalid,
                    "expected at most 65536 metadata entries and as many as the file has room for"));
}

TEST(ParseGguf, NamesTheKeyOfInvalidMetadata) {
  const auto with = [](uint32_t type, const std::string& value) {
    GgufBuilder builder;
    builder.Raw("k", type, value);
    return ParseFile(builder.File(""));
  };
  const std::string huge(8, '\x7F');
  EXPECT_TRUE(Fails(with(13, "1234"), kInvalid, "m.gguf: k: expected a value of type 0 to 12, got type 13"));
  EXPECT_TRUE(Fails(with(7, "\x02"), kInvalid, "k: expected a bool to be 0 or 1"));
  EXPECT_TRUE(
      Fails(with(8, huge), kInvalid, "k: expected a string of at most 16777216 bytes, got 9187201950435737471"));
  EXPECT_TRUE(Fails(with(8, std::string("\x40\0\0\0\0\0\0\0abc", 11)), kInvalid, "k: expected 64 more bytes"));
  const auto array = [](uint32_t type, uint64_t count) {
    std::string value(12, '\0');
    std::memcpy(value.data(), &type, 4);
    std::memcpy(value.data() + 4, &count, 8);
    return value;
  };
  EXPECT_TRUE(Fails(with(9, array(4, UINT64_MAX)), kInvalid, "k: expected an array of at most 16777216 elements"));
  EXPECT_TRUE(Fails(with(9, array(10, 1 << 20)), kInvalid, "k: expected 8388608 more bytes"));
  EXPECT_TRUE(Fails(with(9, array(8, 1 << 20)), kInvalid, "k: expected 8 more bytes"));
  EXPECT_TRUE(Fails(with(9, array(7, 2) + std::string("\x01\x03")), kInvalid, "k: expected a bool to be 0 or 1"));
  std::string nested;
  for (int i = 0; i < 6; ++i) nested += array(9, 1);
  EXPECT_TRUE(Fails(with(9, nested), kInvalid, "k: expected arrays nested at most 4 deep"));

  GgufBuilder twice;
  twice.Uint32("k", 1).Uint32("k", 1);
  EXPECT_TRUE(Fails(ParseFile(twice.File("")), kInvalid, "m.gguf: k: expected one value, got several"));
  for (const uint32_t alignment : {0U, 48U, 1U << 21}) {
    GgufBuilder builder;
    builder.Uint32("general.alignment", alignment);
    EXPECT_TRUE(
        Fails(ParseFile(builder.File("")), kInvalid, "general.alignment: expected a uint32 that is a power of two"));
  }
}

TEST(ParseGguf, NamesTheInvalidTensor) {
  const auto with = [](const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    GgufBuilder builder;
    builder.Tensor("w", sizes, type, offset);
    return ParseFile(builder.File(std::string(64, 'x')));
  };
  EXPECT_OK(with({16}, 0, 0));
  EXPECT_TRUE(Fails(with({1, 1, 1, 1, 1}, 0, 0), kInvalid, "m.gguf: tensor w: expected at most 4 dimensions, got 5"));
  EXPECT_TRUE(Fails(with({UINT64_MAX}, 0, 0), kInvalid, "tensor w: expected sizes below 2^63"));
  EXPECT_TRUE(Fails(with({1ULL << 32, 1ULL << 32}, 0, 0), kInvalid, "tensor w: expected fewer than 2^63 values"));
  EXPECT_TRUE(Fails(with({1ULL << 62}, 0, 0), kInvalid, "tensor w: expected fewer than 2^64 bytes"));
  EXPECT_TRUE(
      Fails(with({48}, 8, 0), kInvalid, "tensor w: expected a row of whole Q8_0 blocks, 32 values each, got 48"));
  EXPECT_TRUE(Fails(with({17}, 0, 0), kInvalid, "tensor w: expected its 68 bytes at offset 0 within the 64 bytes"));
  EXPECT_TRUE(Fails(with({1}, 0, 64), kInvalid, "tensor w: expected its 4 bytes at offset 64"));
  EXPECT_TRUE(Fails(with({1}, 0, UINT64_MAX - 31), kInvalid, "tensor w: expected its 4 bytes"));
  EXPECT_TRUE(Fails(with({1}, 99, 1 << 20), kInvalid, "tensor w: expected its 0 bytes at offset 1048576"));
  EXPECT_TRUE(Fails(with({1}, 0, 4), kInvalid, "tensor w: expected an offset that is a multiple of 32, got 4"));

  GgufBuilder overlap;
  overlap.Tensor("a", {9}, 0, 0).Tensor("b", {1}, 0, 32);
  EXPECT_TRUE(Fails(ParseFile(overlap.File(std::string(64, 'x'))), kInvalid,
                    "tensor b: expected its data at offset 36 or later, where the tensor before it ends, got 32"));
  GgufBuilder twice;
  twice.Tensor("a", {1}, 0, 0).Tensor("a", {1}, 0, 32);
  EXPECT_TRUE(
      Fails(ParseFile(twice.File(std::string(64, 'x'))), kInvalid, "tensor a: expected one tensor, got several"));
}

TEST(GgufFields, ReadsEachKindOfValue) {
  GgufBuilder builder;
  builder.Uint32("count", 7).String("name", "llama").Strings("tokens", {"a", "", "bc"});
  builder.Raw("small", 1, "\xFE").Raw("big", 10, std::string(8, '\xFF')).Raw("yes", 7, "\x01");
  builder.Raw("half", 6, std::string("\0\0\0\x3F", 4));
  builder.Raw("types", 9, std::string("\x03\0\0\0\x02\0\0\0\0\0\0\0\x01\0\xFF\xFF", 16));
  const std::string bytes = builder.File("");
  ASSERT_OK_AND_ASSIGN(const GgufFile file, ParseFile(bytes));

  GgufFields fields(file.metadata, "m");
  int64_t count = 0;
  int64_t small = 0;
  double half = 0;
  bool yes = false;
  std::string_view name;
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;
  fields.Required("count").Int("count", 1, 7, count).Int("small", -2, 0, small).Number("half", 0, 1, half);
  fields.Bool("yes", yes).String("name", name).Strings("tokens", tokens).Ints("types", types).Int("none", 1, 1, count);
  EXPECT_OK(fields.status());
  EXPECT_EQ(count, 7);
  EXPECT_EQ(small, -2);
  EXPECT_EQ(half, 0.5);
  EXPECT_TRUE(yes);
  EXPECT_EQ(name, "llama");
  EXPECT_THAT(tokens, ElementsAre("a", "", "bc"));
  EXPECT_THAT(types, ElementsAre(1, -1));

  const auto error_of = [&](auto read) {
    GgufFields wrong(file.metadata, "m");
    read(wrong);
    return wrong.status();
  };
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Required("none"); }), kInvalid, "m: none: expected a value"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Int("count", 8, 9, count); }), kInvalid,
                    "m: count: expected an integer from 8 to 9, got 7"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Int("big", 0, 9, count); }), kInvalid, "m: big: expected an integer"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Number("name", 0, 9, half); }), kInvalid, "m: name: expected a number"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Bool("count", yes); }), kInvalid, "m: count: expected a bool"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.String("count", name); }), kInvalid, "m: count: expected a string"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Strings("types", tokens); }), kInvalid, "expected an array of strings"));
  EXPECT_TRUE(Fails(error_of([&](auto& f) { f.Ints("tokens", types); }), kInvalid, "expected an array of integers"));
}

TEST(GgufWriter, WritesWhatTheParserReads) {
  const testing::TempFolder folder;
  const std::filesystem::path path = folder.path() / "m.gguf";
  GgufHeader header;
  header.AddUint32("count", 6);
  header.AddUint32("count", 7);
  header.AddFloat32("eps", 1e-5f);
  header.AddBool("yes", true);
  header.AddString("name", "llama");
  header.AddStrings("tokens", std::vector<std::string>{"a", "bc"});
  header.AddInt32s("types", std::vector<int32_t>{1, -3});
  header.AddTensor("w", {2, 32}, TensorType::kQ8_0);
  header.AddTensor("norm", {3}, TensorType::kF32);
  const std::string data = std::string(68, 'w') + std::string(12, 'n');
  ASSERT_OK_AND_ASSIGN(GgufWriter writer, GgufWriter::Create(path, header));
  ASSERT_OK(writer.Write(std::as_bytes(std::span(data).first(5))));
  EXPECT_TRUE(Fails(writer.Finish(), absl::StatusCode::kFailedPrecondition, "expected 2 complete tensors, got 0"));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_OK(writer.Write(std::as_bytes(std::span(data).subspan(5))));
  EXPECT_TRUE(Fails(writer.Write(std::as_bytes(std::span(data).first(1))), absl::StatusCode::kFailedPrecondition,
                    "m.gguf: expected no data after the last tensor, got 1 bytes"));
  ASSERT_OK(writer.Finish());

  const std::string bytes = testing::ReadFile(path);
  EXPECT_EQ(bytes.size(), writer.bytes());
  ASSERT_OK_AND_ASSIGN(const GgufFile file, ParseFile(bytes));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(DataOf(file.tensors[0]), std::string(68, 'w'));
  EXPECT_THAT(file.tensors[0].shape, ElementsAre(2, 32));
  EXPECT_EQ(DataOf(file.tensors[1]), std::string(12, 'n'));
  GgufFields fields(file.metadata, "m");
  int64_t count = 0;
  std::vector<int64_t> types;
  fields.Int("count", 0, 9, count).Ints("types", types);
  EXPECT_EQ(count, 7);
  EXPECT_THAT(types, ElementsAre(1, -3));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // no temporary file
}

TEST(GgufWriter, LeavesNoFileWithoutFinish) {
  const testing::TempFolder folder;
  GgufHeader header;
  header.AddTensor("w", {1}, TensorType::kF32);
  {
    ASSERT_OK(GgufWriter::Create(folder.path() / "m.gguf", header));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(Fails(GgufWriter::Create(folder.path() / "none" / "m.gguf", header), absl::StatusCode::kNotFound,
                    "m.gguf: cannot be created"));
  EXPECT_TRUE(Fails(GgufWriter::Create("/dev/full/m.gguf", header).status(), absl::StatusCode::kFailedPrecondition,
                    "m.gguf: cannot be created"));
}

}  // namespace
}  // namespace baton
