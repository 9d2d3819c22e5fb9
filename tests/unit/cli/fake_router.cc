// SPDX-License-Identifier: Apache-2.0
#include "fake_router.h"

#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <thread>

#include "cli/app.h"
#include "common/file_descriptor.h"

namespace baton::testing {

class FakeRouter::InferenceService final : public v1::Inference::Service {
 public:
  explicit InferenceService(FakeRouter& fake) : fake_(fake) {}

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateResponse>* writer) override {
    {
      MutexLock lock(fake_.mutex_);
      fake_.requests_.push_back(*request);
    }
    return fake_.on_generate(*context, *request, *writer);
  }

  grpc::Status ListModels(grpc::ServerContext* /*context*/, const v1::ListModelsRequest* /*request*/,
                          v1::ListModelsResponse* response) override {
    *response = fake_.models;
    return grpc::Status::OK;
  }

 private:
  FakeRouter& fake_;
};

class FakeRouter::AdminService final : public v1::Admin::Service {
 public:
  explicit AdminService(FakeRouter& fake) : fake_(fake) {}

  grpc::Status GetStatus(grpc::ServerContext* /*context*/, const v1::GetStatusRequest* /*request*/,
                         v1::GetStatusResponse* response) override {
    *response = fake_.on_get_status ? fake_.on_get_status() : fake_.status;
    return grpc::Status::OK;
  }
  grpc::Status ChangeWorkerRole(grpc::ServerContext* /*context*/, const v1::ChangeWorkerRoleRequest* request,
                                v1::ChangeWorkerRoleResponse* response) override {
    if (!fake_.on_change_role) return {grpc::StatusCode::FAILED_PRECONDITION, "not now"};
    response->set_from("decode");
    return fake_.on_change_role(*request, fake_);
  }
  grpc::Status GetTrace(grpc::ServerContext* /*context*/, const v1::GetTraceRequest* request,
                        v1::Trace* response) override {
    if (request->id() != fake_.trace.request_id()) return {grpc::StatusCode::NOT_FOUND, "no trace of " + request->id()};
    *response = fake_.trace;
    return grpc::Status::OK;
  }

 private:
  FakeRouter& fake_;
};

FakeRouter::FakeRouter()
    : on_generate(EchoAnswer),
      inference_(std::make_unique<InferenceService>(*this)),
      admin_(std::make_unique<AdminService>(*this)) {
  server_ = GrpcServer::Start({.listen = "127.0.0.1:0"}, {inference_.get(), admin_.get()}).value();
}

FakeRouter::~FakeRouter() = default;

std::string FakeRouter::target() const { return "127.0.0.1:" + std::to_string(server_->port()); }

std::vector<v1::GenerateRequest> FakeRouter::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

v1::GenerateResponse MakeChunk(uint32_t output_index, const std::string& text, const std::vector<int32_t>& token_ids) {
  v1::GenerateResponse response;
  response.mutable_chunk()->set_output_index(output_index);
  response.mutable_chunk()->set_text(text);
  response.mutable_chunk()->mutable_token_ids()->Add(token_ids.begin(), token_ids.end());
  return response;
}

v1::GenerateResponse MakeFinish() {
  v1::GenerateResponse response;
  v1::Finish& finish = *response.mutable_finish();
  finish.set_reason(v1::FINISH_REASON_LENGTH);
  finish.mutable_usage()->set_prompt_tokens(5);
  finish.mutable_usage()->set_completion_tokens(4);
  finish.mutable_timings()->set_ttft_seconds(0.0123);
  finish.mutable_timings()->set_tpot_seconds(0.002);
  v1::AttemptInfo& attempt = *finish.add_attempts();
  attempt.set_attempt(1);
  attempt.set_prefill_worker("prefill-0");
  attempt.set_decode_worker("decode-0");
  attempt.set_kv_bytes(3 << 20);
  attempt.set_transport("ucx:shm");
  attempt.set_ended_by("finished");
  return response;
}

grpc::Status EchoAnswer(grpc::ServerContext& /*context*/, const v1::GenerateRequest& /*request*/,
                        grpc::ServerWriter<v1::GenerateResponse>& writer) {
  writer.Write(MakeChunk(0, "Hello", {1}));
  writer.Write(MakeChunk(1, " world", {2, 3}));
  writer.Write(MakeChunk(3, "!", {4}));
  writer.Write(MakeFinish());
  return grpc::Status::OK;
}

namespace {

// A file in memory that holds what a command prints.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("output", MFD_CLOEXEC)) {}

  int fd() const { return fd_.get(); }
  std::string Read() const {
    std::string text;
    char piece[4096];
    off_t at = 0;
    for (ssize_t count; (count = pread(fd_.get(), piece, sizeof(piece), at)) > 0; at += count)
      text.append(piece, count);
    return text;
  }

 private:
  const FileDescriptor fd_;
};

}  // namespace

CliResult RunCli(const std::vector<std::string>& arguments, const std::string& input, Interrupt* interrupt,
                 int output_fd) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) std::abort();
  std::thread feeder([&input, fd = pipe_fds[1]] {
    [[maybe_unused]] const ssize_t written = write(fd, input.data(), input.size());
    close(fd);
  });
  Interrupt unused;
  const MemoryFile out;
  OutputStream out_stream(output_fd < 0 ? out.fd() : output_fd);
  std::ostringstream err;
  const Console console = {.input_fd = pipe_fds[0],
                           .input_is_terminal = false,
                           .err_is_terminal = false,
                           .screen_fd = -1,
                           .out = &out_stream,
                           .err = &err,
                           .interrupt = interrupt != nullptr ? interrupt : &unused};
  std::vector<const char*> argv = {"baton"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const int code = RunBaton(static_cast<int>(argv.size()), argv.data(), console);
  feeder.join();
  close(pipe_fds[0]);
  return {code, out.Read(), err.str()};
}

}  // namespace baton::testing
