// SPDX-License-Identifier: Apache-2.0
// Which traces are kept and which are sent.
#include "router/trace/tracer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/file_descriptor.h"
#include "common/metrics.h"
#include "common/steady_time.h"
#include "router/metrics.h"
#include "tests/status_matchers.h"

namespace baton::router {
namespace {

using testing::Fails;

std::string IdOf(uint64_t number) { return RequestId{.high = 0, .low = number}.ToString(); }

TraceRecord Named(uint64_t number, const std::string& label = "") {
  TraceRecord trace;
  trace.id.low = number;
  trace.trace_id = absl::StrCat("t", number);
  trace.label = label;
  return trace;
}

TEST(TracerTest, FindsTheLatestByRequestTraceOrLabel) {
  Tracer tracer(0, nullptr);
  tracer.Add(Named(1, "same"), false);
  tracer.Add(Named(2, "same"), false);
  for (const std::string& id : {IdOf(2), std::string("t2"), std::string("same")}) {
    EXPECT_EQ(tracer.Find(id).value().request_id(), IdOf(2)) << id;
  }
  EXPECT_EQ(tracer.Find(IdOf(1)).value().request_id(), IdOf(1));
  EXPECT_TRUE(Fails(tracer.Find("3"), absl::StatusCode::kNotFound, "no trace of \"3\""));
}

TEST(TracerTest, KeepsTheLastOnes) {
  Tracer tracer(0, nullptr);
  for (size_t i = 0; i <= Tracer::kRecent; ++i) tracer.Add(Named(i), false);
  EXPECT_FALSE(tracer.Find(IdOf(0)).ok());
  EXPECT_TRUE(tracer.Find(IdOf(1)).ok());
}

TEST(TracerTest, AClientsTraceGoesOnAndOthersGetTheRequestsId) {
  const Tracer all(1, nullptr);
  const Tracer none(0, nullptr);
  const std::string header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";
  EXPECT_FALSE(all.Begin({1, 2}, header + "0").sampled) << "the client decides";
  EXPECT_TRUE(none.Begin({1, 2}, header + "1").sampled);
  EXPECT_EQ(none.Begin({1, 2}, header + "1").trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(all.Begin({1, 2}, "nonsense").trace_id, "00000000000000010000000000000002");
  EXPECT_TRUE(all.Begin({1, UINT64_MAX}, "").sampled);
  EXPECT_FALSE(none.Begin({1, 0}, "").sampled);
}

TEST(TracerTest, AboutTheShareIsSampled) {
  const Tracer tracer(0.25, nullptr);
  int sampled = 0;
  for (int i = 0; i < 10000; ++i) sampled += tracer.Begin(RequestId::Random(), "").sampled ? 1 : 0;
  EXPECT_NEAR(sampled, 2500, 300);
}

class ExporterTest : public ::testing::Test {
 protected:
  // A port that a test may listen on or not.
  struct Listener {
    FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int port = 0;
  };
  static Listener Bind(bool listens) {
    Listener listener;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener.socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    if (listens) {
      EXPECT_EQ(listen(listener.socket.get(), 16), 0);
    }
    getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    listener.port = ntohs(address.sin_port);
    return listener;
  }
  void Start(int port, absl::Duration timeout = absl::Seconds(30)) {
    exporter_ = TraceExporter::Start({.endpoint = absl::StrCat("http://127.0.0.1:", port, "/v1/traces"),
                                      .interval = absl::Milliseconds(1),
                                      .timeout = timeout},
                                     metrics_)
                    .value();
  }
  double Count(const std::string& name) {
    double sum = 0;
    for (const prometheus::MetricFamily& family : registry().Collect()) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        std::string labelled = family.name;
        for (const auto& label : metric.label) {
          if (label.name == "reason") absl::StrAppend(&labelled, " ", label.value);
        }
        if (labelled == name) sum += metric.counter.value;
      }
    }
    return sum;
  }
  bool Await(const std::string& name, double count) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    while (Count(name) < count && SteadyTime::Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
    return Count(name) == count;
  }
  void Export(size_t count) {
    for (size_t i = 0; i < count; ++i) exporter_->Export(std::make_shared<const TraceRecord>(Named(1)));
  }
  prometheus::Registry& registry() { return server_->registry(); }

  std::unique_ptr<MetricsServer> server_ = MetricsServer::Start("").value();
  RouterMetrics metrics_{server_->registry()};
  std::unique_ptr<TraceExporter> exporter_;
};

TEST_F(ExporterTest, WithoutACollectorTracesAreDroppedAndCounted) {
  const Listener nobody = Bind(/*listens=*/false);
  Start(nobody.port);
  Export(3);
  EXPECT_TRUE(Await("baton_traces_dropped_total collector", 3));
  EXPECT_EQ(Count("baton_traces_exported_total"), 0);
}

TEST_F(ExporterTest, ACollectorThatRefusesCountsAsNoCollector) {
  ASSERT_OK_AND_ASSIGN(const auto other, MetricsServer::Start("127.0.0.1:0"));  // knows no such page
  Start(other->port());
  Export(2);
  EXPECT_TRUE(Await("baton_traces_dropped_total collector", 2));
}

// The first batch is on its way and gets no answer; the queue fills up meanwhile.
TEST_F(ExporterTest, ACollectorThatHangsBlocksNobodyAndTheQueueIsBounded) {
  const Listener mute = Bind(/*listens=*/true);
  Start(mute.port, absl::Hours(1));
  Export(TraceExporter::kMaxQueue + 2 * TraceExporter::kMaxBatch);
  const double dropped = Count("baton_traces_dropped_total queue");
  EXPECT_GE(dropped, TraceExporter::kMaxBatch);
  EXPECT_LE(dropped, 2 * TraceExporter::kMaxBatch);
  const Stopwatch watch;
  exporter_.reset();
  EXPECT_LT(watch.seconds(), 5) << "ten times the farewell";
}

// Answers each request with 200 until the exporter is gone.
TEST_F(ExporterTest, ACollectorGetsAllTracesAlsoThoseOfTheEnd) {
  const Listener collector = Bind(/*listens=*/true);
  std::atomic<int> requests = 0;
  std::thread server([&] {
    while (true) {
      const FileDescriptor client(accept4(collector.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      char bytes[1 << 16];
      // The whole request comes in one piece: it is small.
      if (recv(client.get(), bytes, sizeof(bytes), 0) <= 0) continue;
      ++requests;
      constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
      EXPECT_EQ(send(client.get(), kOk.data(), kOk.size(), 0), static_cast<ssize_t>(kOk.size()));
    }
  });
  Start(collector.port);
  Export(2 * TraceExporter::kMaxBatch + 1);
  EXPECT_TRUE(Await("baton_traces_exported_total", 2 * TraceExporter::kMaxBatch + 1));
  EXPECT_GE(requests, 3) << "a batch has a limit";
  Export(1);
  exporter_.reset();
  EXPECT_EQ(Count("baton_traces_exported_total"), 2 * TraceExporter::kMaxBatch + 2);
  EXPECT_EQ(Count("baton_traces_dropped_total queue"), 0);
  shutdown(collector.socket.get(), SHUT_RDWR);
  server.join();
}

TEST_F(ExporterTest, ASilentCollectorCostsTheTimeout) {
  const Listener mute = Bind(/*listens=*/true);
  Start(mute.port, absl::Milliseconds(20));
  Export(1);
  EXPECT_TRUE(Await("baton_traces_dropped_total collector", 1));
}

TEST_F(ExporterTest, OtherEndpointsAreRefused) {
  for (const char* endpoint : {"", "collector:4318", "https://collector:4318/v1/traces", "http://collector/v1/traces",
                               "http://:4318", "http://collector:0/"}) {
    EXPECT_TRUE(Fails(TraceExporter::Start({.endpoint = endpoint}, metrics_), absl::StatusCode::kInvalidArgument,
                      "expected http://host:port/path"))
        << endpoint;
  }
}

}  // namespace
}  // namespace baton::router
