// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/grpc.h"
#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using grpc::reflection::v1::ServerReflection;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class Inference : public v1::Inference::CallbackService {};

// A server, and what it answers on one reflection stream.
class GrpcReflectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, GrpcServer::Start({.listen = "127.0.0.1:0"}, {&service_}));
    channel_ = MakeChannel(Concat("127.0.0.1:", server_->port()));
  }

  std::vector<ServerReflectionResponse> Ask(const std::vector<ServerReflectionRequest>& requests) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(absl::Seconds(30)));
    const auto stream = ServerReflection::NewStub(channel_)->ServerReflectionInfo(&context);
    std::vector<ServerReflectionResponse> responses;
    for (const ServerReflectionRequest& request : requests) {
      ServerReflectionResponse response;
      EXPECT_TRUE(stream->Write(request));
      EXPECT_TRUE(stream->Read(&response));
      responses.push_back(std::move(response));
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    return responses;
  }
  ServerReflectionResponse Ask(const ServerReflectionRequest& request) { return Ask(std::vector{request}).front(); }

  Inference service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

std::vector<std::string> FileNames(const ServerReflectionResponse& response) {
  std::vector<std::string> names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.push_back(file.name());
  }
  return names;
}

TEST_F(GrpcReflectionTest, ListsTheServersServices) {
  ServerReflectionRequest request;
  request.set_list_services("");
  std::vector<std::string> names;
  const ServerReflectionResponse response = Ask(request);
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  EXPECT_THAT(names, IsSupersetOf({"baton.v1.Inference", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                                   "grpc.reflection.v1alpha.ServerReflection"}));
}

TEST_F(GrpcReflectionTest, AnswersEveryRequestOfAStreamInOrder) {
  ServerReflectionRequest by_symbol;
  by_symbol.set_host("a-host");
  by_symbol.set_file_containing_symbol("baton.v1.Inference.Generate");
  ServerReflectionRequest by_name;
  by_name.set_file_by_filename("google/protobuf/type.proto");
  const auto responses = Ask(std::vector{by_symbol, by_name});
  EXPECT_EQ(responses[0].valid_host(), "a-host");
  EXPECT_EQ(responses[0].original_request().file_containing_symbol(), "baton.v1.Inference.Generate");
  EXPECT_THAT(FileNames(responses[0]), ::testing::ElementsAre("baton/v1/inference.proto"));
  EXPECT_THAT(FileNames(responses[1]),
              ::testing::UnorderedElementsAre("google/protobuf/type.proto", "google/protobuf/any.proto",
                                              "google/protobuf/source_context.proto"))
      << "with its imports";
}

TEST_F(GrpcReflectionTest, SaysWhatIsNotThere) {
  ServerReflectionRequest request;
  request.set_file_by_filename("no.proto");
  EXPECT_THAT(Ask(request).error_response().error_message(), HasSubstr("no.proto"));
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_file_containing_symbol("no.Symbol");
  EXPECT_THAT(Ask(request).error_response().error_message(), HasSubstr("no.Symbol"));
  request.set_all_extension_numbers_of_type("no.Type");
  EXPECT_THAT(Ask(request).error_response().error_message(), HasSubstr("no.Type"));
  request.mutable_file_containing_extension()->set_containing_type("baton.v1.Chunk");
  request.mutable_file_containing_extension()->set_extension_number(7);
  EXPECT_THAT(Ask(request).error_response().error_message(), HasSubstr("extension 7 of baton.v1.Chunk"));
  EXPECT_EQ(Ask(ServerReflectionRequest()).error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcReflectionTest, NamesTheTypeWhoseExtensionsItLists) {
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("google.protobuf.FieldOptions");
  const ServerReflectionResponse numbers = Ask(request);
  EXPECT_EQ(numbers.all_extension_numbers_response().base_type_name(), "google.protobuf.FieldOptions");
}

// A message without its package and its comments.
std::string FieldsOf(const Descriptor& message) {
  std::string fields;
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    Append(fields, field.name(), "=", field.number(), " ", field.type_name(), field.is_repeated() ? " repeated" : "",
           field.message_type() == nullptr ? "" : " " + field.message_type()->name(),
           field.containing_oneof() == nullptr ? "" : " of " + field.containing_oneof()->name(), "\n");
  }
  return fields;
}

// gRPC's library brings the messages of v1alpha; those of v1 are ours.
TEST(GrpcReflectionProtocolTest, TheMessagesOfV1AreThoseOfV1alpha) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  for (const std::string name :
       {"ServerReflectionRequest", "ExtensionRequest", "ServerReflectionResponse", "FileDescriptorResponse",
        "ExtensionNumberResponse", "ListServiceResponse", "ServiceResponse", "ErrorResponse"}) {
    const Descriptor* const alpha = pool.FindMessageTypeByName("grpc.reflection.v1alpha." + name);
    const Descriptor* const ours = pool.FindMessageTypeByName("grpc.reflection.v1." + name);
    ASSERT_NE(alpha, nullptr) << name;
    ASSERT_NE(ours, nullptr) << name;
    EXPECT_EQ(FieldsOf(*ours), FieldsOf(*alpha)) << name;
  }
}

}  // namespace
}  // namespace baton
