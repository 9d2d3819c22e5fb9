// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a router. A worker notes when each token leaves, clients note when each token comes, and between
// them is baton-router on one CPU, or nothing. Worker and clients are in this process, which should have other CPUs.
//
//   taskset -c 1-3 router_bench [--cpu=0] [--streams=500] [--rate=20] [--seconds=10] [--rounds=10] [--under=COMMAND]
//
// Prints for both ways the time from worker to client and tokens per second. Prints for the router CPU time per token,
// CPU time per request (of one token), and memory per open stream. A round is `streams` requests of one token.
//
// --under runs the router under a command, such as "valgrind --tool=callgrind". The instructions of a request are the
// difference of two runs with different --rounds.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/grpc.h"
#include "common/steady_time.h"
#include "demo_assets.h"
#include "engine/kv/page_hash.h"
#include "fake_worker.h"
#include "process.h"
#include "router/stream_call.h"
#include "tests/files.h"

namespace baton::router {
namespace {

struct BenchOptions {
  int cpu = 0;
  int streams = 500;
  double rate = 20;  // tokens per second of each stream
  double seconds = 10;
  int rounds = 10;
  std::string under;  // words before the router's command
};

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "router_bench: %s\n", why.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

BenchOptions ParseOptions(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::pair<std::string, std::string> flag = absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const bool known = (flag.first == "--cpu" && absl::SimpleAtoi(flag.second, &options.cpu)) ||
                       (flag.first == "--streams" && absl::SimpleAtoi(flag.second, &options.streams)) ||
                       (flag.first == "--rate" && absl::SimpleAtod(flag.second, &options.rate)) ||
                       (flag.first == "--seconds" && absl::SimpleAtod(flag.second, &options.seconds)) ||
                       (flag.first == "--rounds" && absl::SimpleAtoi(flag.second, &options.rounds));
    if (flag.first == "--under") {
      options.under = flag.second;
    } else if (!known) {
      Die(absl::StrCat(argv[i],
                       "; expected --cpu=N, --streams=N, --rate=X, --seconds=X, --rounds=N or --under=COMMAND"));
    }
  }
  return options;
}

// The worker's side of one answer, and when its tokens left. A request's seed says which it is.
struct Stream {
  std::atomic<bool> open = false;  // `reply` is set
  std::shared_ptr<DecodeStream> reply;
  std::vector<std::atomic<int64_t>> sent;  // [output index], steady nanoseconds
};

int64_t Nanos() { return absl::ToInt64Nanoseconds(SteadyTime::Now() - SteadyTime()); }

// Sends every stream's tokens, evenly spread.
void SendTokens(std::vector<Stream>& streams, uint32_t tokens, double rate) {
  const absl::Duration gap = absl::Seconds(1 / (rate * static_cast<double>(streams.size())));
  const SteadyTime start = SteadyTime::Now();
  for (uint32_t i = 0; i < tokens; ++i) {
    for (size_t s = 0; s < streams.size(); ++s) {
      const SteadyTime due = start + static_cast<double>(i * streams.size() + s) * gap;
      if (const absl::Duration early = due - SteadyTime::Now(); early > absl::Microseconds(50)) absl::SleepFor(early);
      streams[s].sent[i] = Nanos();
      streams[s].reply->Send(FakeWorker::Tokens(i, i + 1));
    }
  }
  for (Stream& stream : streams) {
    stream.reply->Send(FakeWorker::Finished());
    stream.reply->End();
  }
}

// Clients' side: the delays of all tokens, and how many calls have ended.
struct Arrivals {
  Mutex mutex;
  CondVar changed;
  std::vector<int64_t> delays ABSL_GUARDED_BY(mutex);
  int ended ABSL_GUARDED_BY(mutex) = 0;

  void Note(const Stream& stream, uint32_t first, int count) {
    const int64_t now = Nanos();
    MutexLock lock(mutex);
    for (int i = 0; i < count; ++i) delays.push_back(now - stream.sent[first + i]);
  }
  void End(const absl::Status& status) {
    if (!status.ok()) Die(status.ToString());
    MutexLock lock(mutex);
    ++ended;
    changed.NotifyAll();
  }
  void WaitEnded(int count) {
    MutexLock lock(mutex);
    while (ended < count) {
      if (!changed.WaitUntil(mutex, SteadyTime::Now() + absl::Minutes(2))) Die("calls do not end");
    }
  }
};

v1::GenerateRequest MakeRequest(int stream, uint32_t tokens) {
  v1::GenerateRequest request;
  for (int i = 0; i < 128; ++i) request.mutable_token_ids()->add_ids((stream * 131 + i) % 4000);
  request.mutable_sampling()->set_max_tokens(tokens);
  request.mutable_sampling()->set_ignore_eos(true);
  request.mutable_sampling()->set_seed(stream);
  return request;
}

using GenerateCall = StreamCall<v1::GenerateRequest, v1::GenerateResponse>;
using DirectCall = StreamCall<v1::DecodeRequest, v1::DecodeEvent>;

void OpenThroughRouter(v1::Inference::Stub& stub, const std::shared_ptr<CallGroup>& group, int number,
                       const Stream& stream, Arrivals& arrivals) {
  GenerateCall::Start(
      {group}, MakeRequest(number, static_cast<uint32_t>(stream.sent.size())),
      [&](auto* context, const auto* message, auto* reactor) { stub.async()->Generate(context, message, reactor); },
      [&](const v1::GenerateResponse& response) {
        if (response.has_chunk()) {
          arrivals.Note(stream, response.chunk().output_index(), response.chunk().token_ids_size());
        }
      },
      [&](const absl::Status& status) { arrivals.End(status); });
}

void OpenDirectly(v1::DecodeWorker::Stub& stub, const std::shared_ptr<CallGroup>& group, int number,
                  const Stream& stream, Arrivals& arrivals) {
  v1::DecodeRequest request;
  request.set_prefill_locally(true);
  request.mutable_header()->mutable_sampling()->set_seed(number);
  DirectCall::Start(
      {group}, request,
      [&](auto* context, const auto* message, auto* reactor) { stub.async()->Decode(context, message, reactor); },
      [&](const v1::DecodeEvent& event) {
        if (event.has_tokens()) {
          arrivals.Note(stream, event.tokens().tokens(0).output_index(), event.tokens().tokens_size());
        }
      },
      [&](const absl::Status& status) { arrivals.End(status); });
}

struct Usage {
  double cpu_seconds = 0;
  double resident_bytes = 0;
};

Usage UsageOf(pid_t pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  // Fields behind the name in parentheses: utime and stime are the 12th and 13th, rss the 22nd.
  const std::vector<std::string> fields = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  double user = 0, system = 0, pages = 0;
  if (fields.size() < 22 || !absl::SimpleAtod(fields[11], &user) || !absl::SimpleAtod(fields[12], &system) ||
      !absl::SimpleAtod(fields[21], &pages)) {
    Die(absl::StrCat("cannot read /proc/", pid, "/stat"));
  }
  return {(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)), pages * static_cast<double>(getpagesize())};
}

void PrintDelays(const char* name, Arrivals& arrivals, double seconds) {
  std::vector<int64_t> delays;
  {
    MutexLock lock(arrivals.mutex);
    delays.swap(arrivals.delays);
  }
  std::sort(delays.begin(), delays.end());
  const auto at = [&](double share) {
    return static_cast<double>(delays[static_cast<size_t>(share * static_cast<double>(delays.size() - 1))]) / 1e3;
  };
  std::printf("%-15s %9.0f tokens/s   worker to client, us: p50 %6.0f   p99 %6.0f   p99.9 %6.0f\n", name,
              static_cast<double>(delays.size()) / seconds, at(0.5), at(0.99), at(0.999));
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options) {
    worker_.SetDecodeScript([this](const v1::DecodeRequest& request, std::shared_ptr<DecodeStream> reply) {
      const uint64_t number = request.header().sampling().seed();
      if (number >= streams_.size()) {  // one token, at once
        reply->Send(FakeWorker::Tokens(0, 1));
        reply->Send(FakeWorker::Finished());
        reply->End();
        return;
      }
      streams_[number].reply = std::move(reply);
      streams_[number].open = true;
    });
  }

  // Waits until every stream is open, then measures.
  template <typename Open, typename WhenOpen>
  void Run(const char* name, Open open, WhenOpen when_open) {
    const auto tokens = static_cast<uint32_t>(options_.rate * options_.seconds);
    streams_ = std::vector<Stream>(options_.streams);
    for (Stream& stream : streams_) stream.sent = std::vector<std::atomic<int64_t>>(tokens);
    Arrivals arrivals;
    const auto group = std::make_shared<CallGroup>();
    for (int i = 0; i < options_.streams; ++i) open(group, i, streams_[i], arrivals);
    for (const Stream& stream : streams_) {
      for (int waited = 0; !stream.open; ++waited) {
        if (waited > 30000) Die("a stream does not open");
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
    absl::SleepFor(absl::Milliseconds(500));
    const auto when_sent = when_open();
    const SteadyTime start = SteadyTime::Now();
    SendTokens(streams_, tokens, options_.rate);
    const double seconds = absl::ToDoubleSeconds(SteadyTime::Now() - start);
    arrivals.WaitEnded(options_.streams);
    when_sent(static_cast<double>(tokens) * options_.streams);
    PrintDelays(name, arrivals, seconds);
    group->WaitEmpty(SteadyTime::Now() + absl::Seconds(10));
    streams_.clear();
  }

  // Requests of one token, `streams` at a time.
  double RouterSecondsPerRequest(v1::Inference::Stub& stub, pid_t router) {
    const Usage before = UsageOf(router);
    for (int round = 0; round < options_.rounds; ++round) {
      // Without a report of the worker, the router believes that all requests so far still wait there.
      worker_.Heartbeat();
      absl::SleepFor(absl::Milliseconds(100));
      Arrivals arrivals;
      const auto group = std::make_shared<CallGroup>();
      for (int i = 0; i < options_.streams; ++i) {
        GenerateCall::Start(
            {group}, MakeRequest(i, 1),
            [&](auto* context, const auto* message, auto* reactor) {
              stub.async()->Generate(context, message, reactor);
            },
            [](const v1::GenerateResponse&) {}, [&](const absl::Status& status) { arrivals.End(status); });
      }
      arrivals.WaitEnded(options_.streams);
      group->WaitEmpty(SteadyTime::Now() + absl::Seconds(10));
    }
    return (UsageOf(router).cpu_seconds - before.cpu_seconds) / (options_.rounds * options_.streams);
  }

  const FakeWorker& worker() const { return worker_; }

 private:
  const BenchOptions options_;
  std::vector<Stream> streams_;
  Handoffs handoffs_;
  FakeWorker worker_{{.id = "w", .assets = DemoAssets(), .announced_fingerprint = ""}, handoffs_};
};

void Main(const BenchOptions& options) {
  Bench bench(options);
  const auto direct = v1::DecodeWorker::NewStub(MakeChannel(bench.worker().address()));
  bench.Run(
      "direct",
      [&](const auto& group, int number, const Stream& stream, Arrivals& arrivals) {
        OpenDirectly(*direct, group, number, stream, arrivals);
      },
      [] { return [](double /*tokens*/) {}; });

  const std::string address = absl::StrCat("127.0.0.1:", 20000 + getpid() % 10000);
  const std::string log = absl::StrCat("/tmp/router_bench.", getpid(), ".log");
  std::vector<std::string> command = absl::StrSplit(options.under, ' ', absl::SkipEmpty());
  command.insert(command.begin(), {"-c", absl::StrCat(options.cpu)});
  command.insert(command.end(), {testing::BinaryFolder() / "baton-router", "--listen=" + address,
                                 "--metrics-listen=", "--workers=" + bench.worker().address(), "--peer-timeout=1h",
                                 "--log.level=warning", absl::StrCat("--max-requests=", 2 * options.streams)});
  testing::Process router({.name = "router",
                           .binary = "/usr/bin/taskset",
                           .arguments = std::move(command),
                           .environment = {},
                           .log_file = log});
  if (const absl::Status started = router.Start(); !started.ok()) Die(started.ToString());
  const auto channel = MakeChannel(address);
  const auto stub = v1::Inference::NewStub(channel);
  const auto admin = v1::Admin::NewStub(channel);
  for (int waited = 0;; ++waited) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(absl::Seconds(1)));
    v1::GetStatusResponse status;
    if (admin->GetStatus(&context, {}, &status).ok() && status.ready()) break;
    if (waited > 3000) Die("the router does not become ready: " + router.Log());
    absl::SleepFor(absl::Milliseconds(100));
  }
  const Usage idle = UsageOf(router.pid());
  double bytes_per_stream = 0;
  double seconds_per_token = 0;
  bench.Run(
      "through router",
      [&](const auto& group, int number, const Stream& stream, Arrivals& arrivals) {
        OpenThroughRouter(*stub, group, number, stream, arrivals);
      },
      [&] {
        const Usage open = UsageOf(router.pid());
        bytes_per_stream = (open.resident_bytes - idle.resident_bytes) / options.streams;
        return [&, open](double tokens) {
          seconds_per_token = (UsageOf(router.pid()).cpu_seconds - open.cpu_seconds) / tokens;
        };
      });
  const double per_request = bench.RouterSecondsPerRequest(*stub, router.pid());
  std::printf("router: %.1f us of CPU per token (%.0f tokens/s a core), %.0f us per request, %.1f KB per open stream\n",
              seconds_per_token * 1e6, 1 / seconds_per_token, per_request * 1e6, bytes_per_stream / 1e3);
  // A router that ends by itself lets the command of --under write its results.
  if (const absl::Status ended = router.Signal(SIGTERM); !ended.ok()) Die(ended.ToString());
  if (const auto ended = router.Wait(absl::Minutes(1)); !ended.ok()) Die(ended.status().ToString());
  unlink(log.c_str());
}

}  // namespace
}  // namespace baton::router

int main(int argc, char** argv) {
  baton::router::Main(baton::router::ParseOptions(argc, argv));
  return 0;
}
