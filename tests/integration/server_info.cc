// SPDX-License-Identifier: Apache-2.0
#include "server_info.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/grpc.h"
#include "common/status_macros.h"

namespace baton::testing {
namespace {

// Sends one request and returns the answer, both as bytes, for services without compiled stubs in Debian. Unary calls
// look the same.
absl::StatusOr<std::string> Exchange(const std::string& target, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(MakeChannel(target));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(GrpcDeadline(absl::Seconds(60)));
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  grpc::Slice slice(request);
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->StartCall(nullptr);
  wait();
  call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
  wait();
  call->Read(&answer, nullptr);
  wait();
  call->Finish(&status, nullptr);
  wait();
  if (!status.ok()) return FromGrpc(status);
  const grpc::Status dumped = answer.DumpToSingleSlice(&slice);
  if (!dumped.ok()) return absl::InternalError(absl::StrCat(method, ": ", dumped.error_message()));
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// Queries server reflection. JSON stands in for the generated classes of the reflection messages.
absl::StatusOr<nlohmann::json> Reflect(const std::string& target, const std::string& version,
                                       const nlohmann::json& request) {
  const std::string package = absl::StrCat("grpc.reflection.", version, ".");
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  google::protobuf::DynamicMessageFactory factory;
  const auto make = [&](const std::string& name) {
    return std::unique_ptr<google::protobuf::Message>(
        factory.GetPrototype(pool->FindMessageTypeByName(package + name))->New());
  };
  const auto message = make("ServerReflectionRequest");
  if (!google::protobuf::util::JsonStringToMessage(request.dump(), message.get()).ok()) {
    return absl::InvalidArgumentError(request.dump());
  }
  BATON_ASSIGN_OR_RETURN(const std::string bytes,
                         Exchange(target, absl::StrCat("/", package, "ServerReflection/ServerReflectionInfo"),
                                  message->SerializeAsString()));
  const auto answer = make("ServerReflectionResponse");
  std::string json;
  if (!answer->ParseFromString(bytes) || !google::protobuf::util::MessageToJsonString(*answer, &json).ok()) {
    return absl::InternalError("the answer is not of the reflection service");
  }
  return nlohmann::json::parse(json);
}

}  // namespace

absl::StatusOr<std::string> CheckHealth(const std::string& target) {
  return Exchange(target, "/grpc.health.v1.Health/Check", "");
}

absl::StatusOr<std::vector<std::string>> ListServices(const std::string& target, const std::string& version) {
  BATON_ASSIGN_OR_RETURN(const nlohmann::json answer, Reflect(target, version, {{"listServices", ""}}));
  std::vector<std::string> names;
  for (const nlohmann::json& service : answer["listServicesResponse"]["service"]) names.push_back(service["name"]);
  return names;
}

absl::StatusOr<std::vector<std::string>> ListMethods(const std::string& target, const std::string& version,
                                                     const std::string& service) {
  BATON_ASSIGN_OR_RETURN(const nlohmann::json answer, Reflect(target, version, {{"fileContainingSymbol", service}}));
  std::vector<std::string> names;
  for (const std::string encoded : answer["fileDescriptorResponse"]["fileDescriptorProto"]) {
    std::string bytes;
    google::protobuf::FileDescriptorProto file;
    if (!absl::Base64Unescape(encoded, &bytes) || !file.ParseFromString(bytes)) {
      return absl::InternalError("what came is no protocol file");
    }
    for (const auto& candidate : file.service()) {
      if (absl::StrCat(file.package(), ".", candidate.name()) != service) continue;
      for (const auto& method : candidate.method()) names.push_back(method.name());
    }
  }
  return names;
}

}  // namespace baton::testing
