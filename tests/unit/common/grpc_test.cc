// SPDX-License-Identifier: Apache-2.0
#include "common/grpc.h"

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/steady_time.h"
#include "common/strings.h"
#include "tests/status_matchers.h"

namespace baton {
namespace {

using ::baton::testing::Fails;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

// Answers ListModels at once; a Generate call runs until it is cancelled.
class FakeInference : public v1::Inference::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context, const v1::ListModelsRequest*,
                                       v1::ListModelsResponse*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(grpc::CallbackServerContext*,
                                                           const v1::GenerateRequest*) override {
    class Reactor : public grpc::ServerWriteReactor<v1::GenerateResponse> {
     public:
      explicit Reactor(FakeInference& owner) : owner_(owner) {}
      void OnCancel() override {
        if (!owner_.is_cancelled.exchange(true)) owner_.cancelled.Notify();
        Finish(grpc::Status::CANCELLED);
      }
      void OnDone() override { delete this; }

     private:
      FakeInference& owner_;
    };
    auto* reactor = new Reactor(*this);
    if (!is_started.exchange(true)) started.Notify();
    return reactor;
  }

  std::atomic<bool> is_started = false;
  std::atomic<bool> is_cancelled = false;
  absl::Notification started;    // the first call
  absl::Notification cancelled;  // the first call
};

std::string Address(int port) { return Concat("127.0.0.1:", port); }

absl::StatusOr<std::unique_ptr<GrpcServer>> StartServer(FakeInference& service, const std::string& listen) {
  return GrpcServer::Start({.listen = listen, .peer_timeout = absl::Seconds(3), .health_names = {"baton.v1.Inference"}},
                           {&service});
}

grpc::Status CallListModels(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(GrpcDeadline(kPatience));
  v1::ListModelsResponse response;
  return v1::Inference::NewStub(channel)->ListModels(&context, {}, &response);
}

// One message sent to and one received from a method known by name only.
std::string Exchange(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, std::string_view bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(kPatience));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  const grpc::Slice request(bytes.data(), bytes.size());
  call->Write(grpc::ByteBuffer(&request, 1), nullptr);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice whole;
  std::string text;
  if (ok && response.DumpToSingleSlice(&whole).ok()) {
    text.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return text;
}

std::string Health(const std::shared_ptr<grpc::Channel>& channel, std::string_view service = "") {
  const std::string request =
      service.empty() ? "" : Concat("\x0a", std::string(1, static_cast<char>(service.size())), service);
  return Exchange(channel, "/grpc.health.v1.Health/Check", request);
}
constexpr char kServing[] = "\x08\x01";     // status: SERVING
constexpr char kNotServing[] = "\x08\x02";  // status: NOT_SERVING

TEST(GrpcDeadlineTest, IsATimeoutFromNowBetweenNothingAndAYear) {
  const auto millis_left = [](absl::Duration timeout) {
    const gpr_timespec deadline = GrpcDeadline(timeout);
    EXPECT_EQ(deadline.clock_type, GPR_CLOCK_MONOTONIC);
    return gpr_time_to_millis(gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC)));
  };
  EXPECT_NEAR(millis_left(absl::Minutes(2)), 120'000, 30'000);
  EXPECT_LE(millis_left(-absl::InfiniteDuration()), 0);
  EXPECT_GT(gpr_time_sub(GrpcDeadline(absl::InfiniteDuration()), gpr_now(GPR_CLOCK_MONOTONIC)).tv_sec, 360 * 86'400);
}

TEST(GrpcStatusTest, EveryCodeAndMessageSurvivesBothWays) {
  EXPECT_OK(FromGrpc(ToGrpc(absl::OkStatus())));
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), Concat("message ", code));
    EXPECT_EQ(static_cast<int>(ToGrpc(status).error_code()), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(GrpcStatusTest, UnknownCodesAndLongMessagesDoNoHarm) {
  EXPECT_TRUE(
      Fails(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(20), "odd")), absl::StatusCode::kUnknown, "odd"));
  EXPECT_LT(ToGrpc(absl::InternalError(std::string(1 << 20, 'x'))).error_message().size(), 4096u);
}

TEST(GrpcServerTest, ServesItsServicesHealthAndReflectionOnAPortOfItsChoice) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  ASSERT_GT(server->port(), 0);
  const auto channel = MakeChannel(Address(server->port()));
  EXPECT_OK(FromGrpc(CallListModels(channel)));
  EXPECT_EQ(Health(channel), kServing);
  EXPECT_EQ(Health(channel, "baton.v1.Inference"), kServing);
  EXPECT_EQ(Health(channel, "another"), "");
  server->SetServing(false);
  EXPECT_EQ(Health(channel), kNotServing);
  EXPECT_EQ(Health(channel, "baton.v1.Inference"), kNotServing);
  server->SetServing(true);
  EXPECT_EQ(Health(channel), kServing);
  constexpr char kListServices[] = "\x3a\x00";
  EXPECT_THAT(Exchange(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                       std::string_view(kListServices, 2)),
              HasSubstr("baton.v1.Inference"));
}

// The statuses that Health/Watch sends, in their order, for as long as `goes_on`, called after each, says so.
std::vector<std::string> WatchHealth(const std::shared_ptr<grpc::Channel>& channel,
                                     const std::function<bool(size_t count)>& goes_on) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(GrpcDeadline(kPatience));
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  call->StartCall(nullptr);
  wait();
  grpc::Slice empty;
  call->WriteLast(grpc::ByteBuffer(&empty, 1), {}, nullptr);
  wait();
  std::vector<std::string> statuses;
  grpc::ByteBuffer message;
  do {
    call->Read(&message, nullptr);
    if (!wait()) break;
    grpc::Slice whole;
    EXPECT_TRUE(message.DumpToSingleSlice(&whole).ok());
    statuses.emplace_back(reinterpret_cast<const char*>(whole.begin()), whole.size());
  } while (goes_on(statuses.size()));
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return statuses;
}

TEST(GrpcServerTest, TellsWatchersOfHealthAboutChangesOnly) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  // Far enough apart that each would be a message: the health service merges what it cannot send at once.
  const auto repeat = [&server](bool serving) {
    for (int i = 0; i < 10; ++i) {
      server->SetServing(serving);
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  const auto statuses = WatchHealth(MakeChannel(Address(server->port())), [&](size_t count) {
    const bool serving = count % 2 == 1;
    repeat(serving);
    server->SetServing(!serving);
    return count < 4;
  });
  EXPECT_THAT(statuses, ::testing::ElementsAre(kServing, kNotServing, kServing, kNotServing));
}

TEST(GrpcServerTest, SaysThatAPortIsInUse) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto first, StartServer(service, "127.0.0.1:0"));
  FakeInference other;
  const auto second = StartServer(other, Address(first->port()));
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, Address(first->port())));
  EXPECT_TRUE(Fails(second, absl::StatusCode::kUnavailable, "already in use"));
}

TEST(GrpcServerTest, RefusesWhatIsNoAddress) {
  FakeInference service;
  EXPECT_TRUE(Fails(StartServer(service, "nowhere"), absl::StatusCode::kInvalidArgument, "\"nowhere\""));
}

TEST(GrpcServerTest, CancelsCallsThatOutliveTheDeadlineOfAShutdown) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  const auto channel = MakeChannel(Address(server->port()));
  grpc::ClientContext context;
  auto reader = v1::Inference::NewStub(channel)->Generate(&context, {});
  ASSERT_TRUE(service.started.WaitForNotificationWithTimeout(kPatience));
  const SteadyTime begin = SteadyTime::Now();
  server->Shutdown(begin + absl::Milliseconds(50));
  EXPECT_LT(SteadyTime::Now() - begin, kPatience);
  EXPECT_TRUE(service.cancelled.HasBeenNotified());
  EXPECT_FALSE(reader->Finish().ok());
  server->Shutdown(SteadyTime::InfiniteFuture());
}

TEST(GrpcServerTest, EndsCallsThatComeDuringAShutdown) {
  for (int run = 0; run < 20; ++run) {
    FakeInference service;
    ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
    const auto stub = v1::Inference::NewStub(MakeChannel(Address(server->port())));
    std::atomic<bool> stop = false;
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        while (!stop) {
          grpc::ClientContext context;
          v1::GenerateResponse response;
          const auto reader = stub->Generate(&context, {});
          while (reader->Read(&response)) {
          }
          EXPECT_FALSE(reader->Finish().ok());
        }
      });
    }
    EXPECT_TRUE(service.started.WaitForNotificationWithTimeout(kPatience));
    server->Shutdown(SteadyTime::Now());
    stop = true;
    for (std::thread& client : clients) client.join();
  }
}

TEST(GrpcServerTest, AsksClientsToConnectElsewhereAndLetsTheirCallsGoOn) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  const std::string address = Address(server->port());
  const auto channel = MakeChannel(address);
  grpc::ClientContext context;
  auto reader = v1::Inference::NewStub(channel)->Generate(&context, {});
  ASSERT_TRUE(service.started.WaitForNotificationWithTimeout(kPatience));

  server->StopListening();
  FakeInference other;
  absl::StatusOr<std::unique_ptr<GrpcServer>> successor = absl::UnavailableError("not started");
  const SteadyTime deadline = SteadyTime::Now() + kPatience;
  while (!successor.ok() && SteadyTime::Now() < deadline) successor = StartServer(other, address);
  ASSERT_OK(successor);
  // A call may cross the server's request on the wire.
  absl::Status status;
  do {
    status = FromGrpc(CallListModels(channel));
  } while (absl::IsCancelled(status));
  EXPECT_OK(status);
  EXPECT_FALSE(service.cancelled.HasBeenNotified());
  server->Shutdown(SteadyTime::Now());
  EXPECT_TRUE(service.cancelled.HasBeenNotified());
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(MakeChannelTest, ReconnectsToAServerThatCameBack) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  const std::string address = Address(server->port());
  const auto channel = MakeChannel(address);
  ASSERT_OK(FromGrpc(CallListModels(channel)));
  server.reset();
  FakeInference again;
  ASSERT_OK_AND_ASSIGN(server, StartServer(again, address));
  EXPECT_OK(FromGrpc(CallListModels(channel)));
}

// A TCP connection forwarded to `port` until Stall(), after which both sides see silence but no closed connection.
class StallingProxy {
 public:
  explicit StallingProxy(int port) : target_port_(port), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Forward(); });
  }

  ~StallingProxy() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }

  int port() const { return port_; }
  void Stall() { stalled_ = true; }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static bool Readable(int fd) {
    pollfd wanted = {.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&wanted, 1, 2) == 1;
  }

  void Forward() {
    while (!Readable(listener_)) {
      if (stop_) return;
    }
    const int client = accept(listener_, nullptr, nullptr);
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(target_port_);
    EXPECT_EQ(connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    bool open = true;
    while (!stop_) {
      if (stalled_ || !open) {
        std::this_thread::yield();
        poll(nullptr, 0, 2);
        continue;
      }
      open = Pump(client, server) && Pump(server, client);
    }
    close(client);
    close(server);
  }

  // False at the end of the stream.
  static bool Pump(int from, int to) {
    if (!Readable(from)) return true;
    std::array<char, 4096> buffer;
    const ssize_t n = read(from, buffer.data(), buffer.size());
    return n > 0 && write(to, buffer.data(), static_cast<size_t>(n)) == n;
  }

  const int target_port_;
  const int listener_;
  int port_ = 0;
  std::atomic<bool> stalled_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(KeepaliveTest, BothSidesNoticeThatTheOtherWentSilent) {
  FakeInference service;
  ASSERT_OK_AND_ASSIGN(auto server, StartServer(service, "127.0.0.1:0"));
  StallingProxy proxy(server->port());
  const auto channel =
      MakeChannel(Address(proxy.port()), {.max_message_bytes = 1 << 20, .peer_timeout = absl::Seconds(3)});
  grpc::ClientContext context;
  auto reader = v1::Inference::NewStub(channel)->Generate(&context, {});
  ASSERT_TRUE(service.started.WaitForNotificationWithTimeout(kPatience));
  ASSERT_FALSE(service.cancelled.HasBeenNotified());

  proxy.Stall();
  EXPECT_TRUE(service.cancelled.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(Fails(FromGrpc(reader->Finish()), absl::StatusCode::kUnavailable, ""));
}

}  // namespace
}  // namespace baton
