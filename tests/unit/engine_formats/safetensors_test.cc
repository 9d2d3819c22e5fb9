// SPDX-License-Identifier: Apache-2.0
#include "engine/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/safetensors_writer.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::kInvalid;
using testing::SafetensorsFile;

absl::StatusOr<std::vector<Tensor>> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "m.safetensors");
}

std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(ParseSafetensors, ReadsTypeShapeAndDataOfEachTensor) {
  const std::string file = SafetensorsFile({{"b", "BF16", {2, 2}, "12345678"},
                                            {"a", "F32", {1}, "abcd"},
                                            {"scalar", "F16", {}, "xy"},
                                            {"none", "F32", {0, 3}, ""},
                                            {"ids", "I64", {1}, "87654321"}});
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> tensors, Parse(file));
  ASSERT_EQ(tensors.size(), 5U);
  for (const Tensor& tensor : tensors) {
    const std::string data(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    if (tensor.name == "b") {
      EXPECT_EQ(data, "12345678");
      EXPECT_EQ(tensor.type, TensorType::kBF16);
      EXPECT_THAT(tensor.shape, ElementsAre(2, 2));
    } else if (tensor.name == "a") {
      EXPECT_EQ(data, "abcd");
      EXPECT_EQ(tensor.type, TensorType::kF32);
    } else if (tensor.name == "ids") {
      EXPECT_EQ(data, "87654321");
      EXPECT_EQ(tensor.type, std::nullopt);
      EXPECT_EQ(tensor.type_name, "I64");
    }
  }
}

TEST(ParseSafetensors, SkipsMetadata) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"a":)" + Entry("F32", "[1]", "[0,4]") + "}";
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> tensors, Parse(SafetensorsFile(header, "abcd")));
  EXPECT_EQ(tensors.size(), 1U);
}

TEST(ParseSafetensors, RefusesAHeaderLongerThanTheFile) {
  EXPECT_TRUE(Fails(Parse(""), kInvalid, "m.safetensors: expected a safetensors file to start with 8 bytes"));
  EXPECT_TRUE(Fails(Parse("1234567"), kInvalid, "8 bytes of header length, got 7"));
  EXPECT_TRUE(
      Fails(Parse(std::string("\x03\0\0\0\0\0\0\0{}", 10)), kInvalid, "header length is 3 bytes, expected at most 2"));
  EXPECT_TRUE(Fails(Parse(std::string(8, '\xff') + "{}"), kInvalid, "header length is 18446744073709551615"));
  EXPECT_TRUE(Fails(Parse(SafetensorsFile("[]", "")), kInvalid, "expected the header to be a JSON object"));
}

TEST(ParseSafetensors, RefusesAFileTruncatedAtAnyByte) {
  const std::string file = SafetensorsFile({{"a", "F32", {2}, "abcdefgh"}, {"b", "F16", {1}, "ij"}});
  ASSERT_OK(Parse(file));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(Parse(file.substr(0, size)).ok()) << size;
}

TEST(ParseSafetensors, NamesTheInvalidTensor) {
  const std::pair<std::string, const char*> cases[] = {
      {Entry("F31", "[1]", "[0,4]"), "tensor w: expected a dtype of the safetensors format, got \"F31\""},
      {R"({"shape":[1],"data_offsets":[0,4]})", "tensor w: expected a dtype"},
      {Entry("F32", "[2]", "[0,4]"), "tensor w: expected F32 [2] to take 8 bytes, data_offsets give 4"},
      {Entry("F16", "[1]", "[0,4]"), "tensor w: expected F16 [1] to take 2 bytes, data_offsets give 4"},
      {Entry("F32", "[-1]", "[0,4]"), "tensor w: expected shape to be a list of at most 8 sizes"},
      {Entry("F32", "[1.0]", "[0,4]"), "tensor w: expected shape"},
      {Entry("F32", "1", "[0,4]"), "tensor w: expected shape"},
      {Entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "tensor w: expected shape"},
      {Entry("F32", "[4611686018427387905]", "[0,4]"), "to take more than 2^64 bytes"},
      {Entry("F32", "[4294967296,4294967296]", "[0,4]"), "to take more than 2^64 bytes"},
      {Entry("F32", "[18446744073709551615]", "[0,4]"), "tensor w: expected shape"},
      {Entry("F32", "[1]", "[0]"), "tensor w: expected data_offsets [begin, end] within the 4 bytes"},
      {Entry("F32", "[1]", "[4,0]"), "tensor w: expected data_offsets"},
      {Entry("F32", "[1]", "[4,8]"), "tensor w: expected data_offsets"},
      {Entry("F32", "[1]", "[9223372036854775803,9223372036854775807]"), "tensor w: expected data_offsets"},
      {"3", "tensor w: expected an object"},
  };
  for (const auto& [entry, error] : cases) {
    EXPECT_TRUE(Fails(Parse(SafetensorsFile("{\"w\":" + entry + "}", "abcd")), kInvalid, error)) << entry;
  }
}

TEST(ParseSafetensors, RefusesOverlapGapAndTrailingBytes) {
  const auto two = [](const std::string& a, const std::string& b) {
    return SafetensorsFile("{\"a\":" + a + ",\"b\":" + b + "}", "12345678");
  };
  EXPECT_OK(Parse(two(Entry("F32", "[1]", "[4,8]"), Entry("F32", "[1]", "[0,4]"))));
  EXPECT_TRUE(Fails(Parse(two(Entry("F32", "[1]", "[0,4]"), Entry("F32", "[1]", "[3,7]"))), kInvalid,
                    "tensor b: expected its data at offset 4, where the tensor before it ends, got 3"));
  EXPECT_TRUE(Fails(Parse(two(Entry("F32", "[1]", "[0,4]"), Entry("F16", "[1]", "[6,8]"))), kInvalid,
                    "tensor b: expected its data at offset 4"));
  EXPECT_TRUE(Fails(Parse(two(Entry("F32", "[1]", "[0,4]"), Entry("F16", "[1]", "[4,6]"))), kInvalid,
                    "expected the file to end with its last tensor, 6 bytes after the header, got 8"));
}

TEST(ParseSafetensors, RefusesDuplicateNames) {
  const std::string entry = Entry("F32", "[1]", "[0,4]");
  EXPECT_TRUE(Fails(Parse(SafetensorsFile("{\"a\":" + entry + ",\"a\":" + entry + "}", "1234")), kInvalid,
                    R"(m.safetensors: header: key "a" occurs twice)"));
}

TEST(ParseSafetensorsIndex, MapsTensorsToFiles) {
  ASSERT_OK_AND_ASSIGN(const auto files,
                       ParseSafetensorsIndex(R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})", "i"));
  EXPECT_THAT(files, ElementsAre(std::pair("a", "1.safetensors"), std::pair("b", "2.safetensors")));
}

TEST(ParseSafetensorsIndex, RefusesFilesOutsideTheFolder) {
  for (const char* file :
       {R"("/etc/x.safetensors")", R"("../x.safetensors")", R"("a\u0000.safetensors")", R"("x.bin")", "3"}) {
    const std::string text = std::string(R"({"weight_map": {"w": )") + file + "}}";
    EXPECT_TRUE(Fails(ParseSafetensorsIndex(text, "i"), kInvalid, "i: weight_map: w: expected the name")) << file;
  }
  EXPECT_TRUE(Fails(ParseSafetensorsIndex("{}", "i"), kInvalid, "i: weight_map: expected a value"));
  EXPECT_TRUE(Fails(ParseSafetensorsIndex(R"({"weight_map": 1})", "i"), kInvalid, "i: weight_map: expected an object"));
}

}  // namespace
}  // namespace baton
