// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_message.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <string>
#include <string_view>

#include "common/log.h"
#include "common/strings.h"

namespace baton {
namespace {

constexpr int kBlockBytes = 1 << 20;

// Receives protobuf's error text during ParseMessage on this thread. If null, the text goes to the log.
thread_local std::string* parse_error = nullptr;

void OnProtobufLog(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/, const std::string& message) {
  if (parse_error != nullptr) {
    *parse_error = message;
  } else if (level >= google::protobuf::LOGLEVEL_WARNING) {
    Log(LogLevel::kWarning, "protobuf.library", {{"message", message}});
  }
}

// Extracts the field from "String field 'baton.v1.GenerateRequest.prompt' contains invalid UTF-8 data ...", without the
// name of `message`. Empty for other texts.
std::string FieldNotUtf8(std::string_view error, const google::protobuf::Message& message) {
  const size_t begin = error.find('\'');
  if (error.find("invalid UTF-8") == std::string_view::npos || begin == std::string_view::npos) return "";
  std::string_view field = error.substr(begin + 1);
  field = field.substr(0, field.find('\''));
  const std::string own = message.GetTypeName() + ".";
  const std::string package = message.GetDescriptor()->file()->package() + ".";
  for (const std::string& prefix : {own, package}) {
    if (field.substr(0, prefix.size()) == prefix) return std::string(field.substr(prefix.size()));
  }
  return std::string(field);
}

}  // namespace

void RouteProtobufLog() {
  [[maybe_unused]] static auto* const former = google::protobuf::SetLogHandler(&OnProtobufLog);
}

absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  RouteProtobufLog();
  grpc::ByteBuffer copy = bytes;  // shares the bytes; the reader needs a mutable buffer
  grpc::ProtoBufferReader reader(&copy);
  std::string error;
  parse_error = &error;
  const bool parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
  parse_error = nullptr;
  if (parsed) return absl::OkStatus();
  if (const std::string field = FieldNotUtf8(error, message); !field.empty()) {
    return absl::InvalidArgumentError(Concat(field, ": not valid UTF-8"));
  }
  return absl::InvalidArgumentError(Concat("the request is malformed, expected a ", message.GetTypeName(), " message"));
}

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes;
  const size_t size = message.ByteSizeLong();
  grpc::ProtoBufferWriter writer(&bytes, kBlockBytes, static_cast<int>(size));
  message.SerializeToZeroCopyStream(&writer);
  return bytes;
}

}  // namespace baton
