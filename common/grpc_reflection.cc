// SPDX-License-Identifier: Apache-2.0
#include "common/grpc_reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/impl/server_initializer.h>

#include <memory>
#include <set>

#include "common/strings.h"

namespace baton {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using Request = grpc::reflection::v1::ServerReflectionRequest;
using Response = grpc::reflection::v1::ServerReflectionResponse;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

void NotFound(const std::string& what, Response& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message(Concat(what, " not found"));
}

// `file`, then everything it imports, each once.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              grpc::reflection::v1::FileDescriptorResponse& files) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  files.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, files);
}

void AnswerFile(const FileDescriptor* file, const std::string& what, Response& response) {
  if (file == nullptr) return NotFound(what, response);
  std::set<const FileDescriptor*> added;
  AddFiles(*file, added, *response.mutable_file_descriptor_response());
}

void AnswerExtension(const grpc::reflection::v1::ExtensionRequest& request, Response& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* const extension =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, request.extension_number());
  AnswerFile(extension == nullptr ? nullptr : extension->file(),
             Concat("extension ", request.extension_number(), " of ", request.containing_type()), response);
}

void AnswerExtensionNumbers(const std::string& name, Response& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return NotFound(Concat("message ", name), response);
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  auto& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) numbers.add_extension_number(extension->number());
}

}  // namespace

// Hears from the builder which services its server has.
class ReflectionService::Plugin final : public grpc::ServerBuilderPlugin {
 public:
  explicit Plugin(ReflectionService& owner) : owner_(owner) {}
  std::string name() override { return "baton.reflection"; }
  void InitServer(grpc::ServerInitializer* /*server*/) override {}
  void Finish(grpc::ServerInitializer* server) override {
    MutexLock lock(owner_.mutex_);
    owner_.services_ = *server->GetServiceList();
  }
  void ChangeArguments(const std::string& /*name*/, void* /*value*/) override {}

 private:
  ReflectionService& owner_;
};

class ReflectionService::Option final : public grpc::ServerBuilderOption {
 public:
  explicit Option(ReflectionService& owner) : owner_(owner) {}
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->push_back(std::make_unique<Plugin>(owner_));
  }

 private:
  ReflectionService& owner_;
};

// Reads a request, writes its answer, and reads the next.
class ReflectionService::Call final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  explicit Call(const ReflectionService& service) : service_(service) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_ = service_.Answer(request_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  const ReflectionService& service_;
  Request request_;
  Response response_;
};

void ReflectionService::Install(grpc::ServerBuilder& builder) {
  builder.SetOption(std::make_unique<Option>(*this));
  builder.RegisterService(this);
}

grpc::ServerBidiReactor<Request, Response>* ReflectionService::ServerReflectionInfo(
    grpc::CallbackServerContext* /*context*/) {
  return new Call(*this);
}

Response ReflectionService::Answer(const Request& request) const {
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      AnswerFile(Pool().FindFileByName(request.file_by_filename()), Concat("file ", request.file_by_filename()),
                 response);
      break;
    case Request::kFileContainingSymbol:
      AnswerFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()),
                 Concat("symbol ", request.file_containing_symbol()), response);
      break;
    case Request::kFileContainingExtension: AnswerExtension(request.file_containing_extension(), response); break;
    case Request::kAllExtensionNumbersOfType:
      AnswerExtensionNumbers(request.all_extension_numbers_of_type(), response);
      break;
    case Request::kListServices: {
      MutexLock lock(mutex_);
      auto& list = *response.mutable_list_services_response();
      for (const std::string& name : services_) list.add_service()->set_name(name);
      break;
    }
    case Request::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("message_request is not set");
      break;
  }
  return response;
}

}  // namespace baton
