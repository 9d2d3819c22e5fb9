// SPDX-License-Identifier: Apache-2.0
#include "cli/load/openai_target.h"

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "cli/load/event_stream.h"
#include "common/http_post.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr size_t kMaxErrorBytes = size_t{64} << 10;
constexpr size_t kMaxModelsBytes = size_t{4} << 20;
constexpr size_t kReadBytes = size_t{16} << 10;

// A connection to the server, with the bytes that were read too far.
struct Connection {
  explicit Connection(asio::io_context& io) : stream(io) {}
  beast::tcp_stream stream;
  beast::flat_buffer buffer{kReadBytes};
};

}  // namespace

// The I/O thread and everything that belongs to it. Public members but Post are for this thread only.
class OpenAiTarget::Io {
 public:
  Io(HttpTarget target, std::string api_key, CompletionOptions completions)
      : target_(std::move(target)), api_key_(std::move(api_key)), completions_(completions) {}
  ~Io() {
    if (!thread_.joinable()) return;
    work_.reset();
    asio::post(context_, [this] { idle_.clear(); });
    thread_.join();
  }

  absl::Status Resolve(absl::Duration timeout) {
    std::optional<error_code> done;
    Tcp::resolver resolver(context_);
    resolver.async_resolve(target_.address.host, std::to_string(target_.address.port),
                           [&](error_code error, const Tcp::resolver::results_type& found) {
                             done = error;
                             for (const auto& entry : found) endpoints_.push_back(entry.endpoint());
                           });
    RunFor(timeout, [&] { return done.has_value(); });
    if (done && !*done && !endpoints_.empty()) return absl::OkStatus();
    const std::string reason = !done ? Concat("no answer within ", absl::FormatDuration(timeout)) : done->message();
    resolver.cancel();
    return absl::UnavailableError(
        Concat("cannot resolve ", target_.address.host, ": expected --target http://host:port (", reason, ")"));
  }

  absl::StatusOr<std::vector<ServedModel>> Models(absl::Duration timeout);

  // Runs a function on the I/O thread, which begins with the first. Any thread may call.
  template <typename Function>
  void Post(Function&& function) {
    std::call_once(started_, [this] { thread_ = std::thread([this] { context_.run(); }); });
    asio::post(context_, std::forward<Function>(function));
  }

  http::request<http::string_body> MakeRequest(http::verb verb, std::string_view resource) const {
    http::request<http::string_body> request(verb, Concat(target_.path, resource), /*version=*/11);
    request.set(http::field::host, Concat(target_.address.host, ":", target_.address.port));
    if (!api_key_.empty()) request.set(http::field::authorization, Concat("Bearer ", api_key_));
    request.keep_alive(true);
    return request;
  }

  // Returns an idle connection; null: there is none.
  std::unique_ptr<Connection> TakeIdle() {
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  asio::io_context& context() { return context_; }
  const std::vector<Tcp::endpoint>& endpoints() const { return endpoints_; }
  const CompletionOptions& completions() const { return completions_; }
  void AddIdle(std::unique_ptr<Connection> connection) { idle_.push_back(std::move(connection)); }

  class Exchange;
  std::set<std::shared_ptr<Exchange>> running;

 private:
  template <typename Done>
  void RunFor(absl::Duration timeout, Done done) {
    const SteadyTime deadline = SteadyTime::Now() + timeout;
    context_.restart();
    while (!done() && SteadyTime::Now() < deadline) {
      context_.run_one_for(absl::ToChronoNanoseconds(deadline - SteadyTime::Now()));
    }
  }

  const HttpTarget target_;
  const std::string api_key_;
  const CompletionOptions completions_;
  asio::io_context context_{/*concurrency_hint=*/1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::vector<Tcp::endpoint> endpoints_;
  std::vector<std::unique_ptr<Connection>> idle_;  // the latest used is the last
  std::once_flag started_;
  std::thread thread_;
};

// One request: connect or take an idle connection, send, read the header, read events. Each step is the completion of
// the step before; `running` holds the exchange until its end.
class OpenAiTarget::Io::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Io& io, LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer)
      : io_(io), deadline_(deadline), observer_(std::move(observer)) {
    request_ = io.MakeRequest(http::verb::post, "/completions");
    request_.set(http::field::content_type, "application/json");
    request_.set(http::field::accept, "text/event-stream");
    request_.body() = CompletionBody(request, io.completions());
    request_.prepare_payload();
  }

  void Start() {
    connection_ = io_.TakeIdle();
    reused_ = connection_ != nullptr;
    if (reused_) return Send();
    Connect();
  }

  void Cancel() {
    if (connection_) connection_->stream.cancel();
    cancelled_ = true;
  }

 private:
  using Step = void (Exchange::*)();

  // Returns a completion handler that goes on with `next` on success.
  auto Then(Step next, const char* failure) {
    return [self = shared_from_this(), next, failure](error_code error, const auto&...) {
      if (self->cancelled_ || error) return self->Fail(failure, error);
      ((*self).*next)();
    };
  }

  void Connect() {
    connection_ = std::make_unique<Connection>(io_.context());
    SetDeadline();
    connection_->stream.async_connect(io_.endpoints(), Then(&Exchange::Connected, "cannot be reached"));
  }
  void Connected() {
    error_code error;
    if (connection_->stream.socket().set_option(Tcp::no_delay(true), error)) return Fail("refused TCP_NODELAY", error);
    Send();
  }
  void Send() {
    SetDeadline();
    parser_.emplace();
    parser_->header_limit(kReadBytes / 2);
    parser_->body_limit(std::numeric_limits<uint64_t>::max());  // 1.74 takes boost::none for 0
    http::async_write(connection_->stream, request_, Then(&Exchange::Sent, "did not take the request"));
  }
  void Sent() {
    http::async_read_header(connection_->stream, connection_->buffer, *parser_,
                            Then(&Exchange::HaveHeader, "did not answer"));
  }
  void HaveHeader() {
    answered_ = true;
    status_ = parser_->get().result_int();
    ReadMore();
  }

  void ReadMore() {
    if (parser_->is_done()) return Complete();
    parser_->get().body() = {.data = bytes_.data(), .size = bytes_.size(), .more = true};
    http::async_read_some(connection_->stream, connection_->buffer, *parser_,
                          [self = shared_from_this()](error_code error, size_t) { self->HaveBytes(error); });
  }

  void HaveBytes(error_code error) {
    const SteadyTime now = SteadyTime::Now();
    if (error == http::error::need_buffer) error = {};
    const std::string_view bytes(bytes_.data(), bytes_.size() - parser_->get().body().size);
    if (http::to_status_class(status_) != http::status_class::successful) {
      error_body_ += bytes.substr(0, kMaxErrorBytes - std::min(error_body_.size(), kMaxErrorBytes));
      if (error_body_.size() >= kMaxErrorBytes) return Complete();
    } else {
      const absl::Status fed = events_.Feed(bytes, [&](std::string_view data) { return TakeEvent(data, now); });
      if (!fed.ok()) return End(absl::IsUnavailable(fed) ? "SERVER_ERROR" : "MALFORMED_ANSWER", fed.message());
    }
    if (cancelled_ || error) return Fail("stopped in the middle of the answer", error);
    ReadMore();
  }

  absl::Status TakeEvent(std::string_view data, SteadyTime now) {
    if (data == "[DONE]") {
      done_ = true;
      return absl::OkStatus();
    }
    BATON_ASSIGN_OR_RETURN(const CompletionEvent event, ParseCompletionEvent(data));
    if (const int tokens = counter_.Add(event, now); tokens > 0) observer_->OnTokens(now, tokens);
    finished_ = finished_ || event.is_finish;
    end_.answer.insert(end_.answer.end(), event.token_ids.begin(), event.token_ids.end());
    if (event.usage) {
      end_.prompt_tokens = event.usage->prompt_tokens;
      end_.cached_tokens = event.usage->cached_tokens;
    }
    return absl::OkStatus();
  }

  // The HTTP message has ended.
  void Complete() {
    if (http::to_status_class(status_) != http::status_class::successful) {
      return End(Concat("HTTP_", status_), ErrorMessage(error_body_));
    }
    if (!done_ && !finished_) {
      return End("BROKEN_STREAM", "the stream ended without [DONE] and without a finish_reason");
    }
    if (parser_->is_done() && parser_->keep_alive() && connection_->buffer.size() == 0) keep_connection_ = true;
    End("", "");
  }

  void Fail(std::string_view what, error_code error) {
    if (cancelled_) return End("CANCELLED", "");
    if (error == beast::error::timeout) return End("DEADLINE_EXCEEDED", "not done within --timeout");
    if (reused_ && !answered_) {  // the server had closed the idle connection
      reused_ = false;
      return Connect();
    }
    // A server may close the connection right behind [DONE].
    if (done_ && status_ == 200) return End("", "");
    End(answered_ ? "BROKEN_STREAM" : "UNAVAILABLE", Concat("the server ", what, ": ", error.message()));
  }

  template <typename Text>
  void End(std::string error, const Text& reason) {
    end_.error = std::move(error);
    end_.reason = Concat(reason);
    end_.at = SteadyTime::Now();
    end_.arrivals = std::move(counter_).Finish();
    if (keep_connection_) {
      connection_->stream.expires_never();
      io_.AddIdle(std::move(connection_));
    }
    const std::shared_ptr<Exchange> self = shared_from_this();
    io_.running.erase(self);
    observer_->OnEnd(std::move(end_));
  }

  void SetDeadline() {
    connection_->stream.expires_after(std::chrono::nanoseconds(
        absl::ToInt64Nanoseconds(std::max(deadline_ - SteadyTime::Now(), absl::Nanoseconds(1)))));
  }

  Io& io_;
  const SteadyTime deadline_;
  const std::shared_ptr<RequestObserver> observer_;
  http::request<http::string_body> request_;
  std::unique_ptr<Connection> connection_;
  std::optional<http::response_parser<http::buffer_body>> parser_;
  std::array<char, kReadBytes> bytes_;
  unsigned status_ = 0;
  EventStream events_;
  TokenCounter counter_;
  std::string error_body_;
  bool reused_ = false;    // the connection was idle before
  bool answered_ = false;  // the answer's header has come
  bool done_ = false;      // [DONE] has come
  bool finished_ = false;  // a finish_reason has come
  bool cancelled_ = false;
  bool keep_connection_ = false;
  RequestEnd end_;
};

absl::StatusOr<std::vector<ServedModel>> OpenAiTarget::Io::Models(absl::Duration timeout) {
  Connection connection(context_);
  http::request<http::string_body> request = MakeRequest(http::verb::get, "/models");
  request.keep_alive(false);
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxModelsBytes);
  std::optional<error_code> done;
  connection.stream.expires_after(absl::ToChronoNanoseconds(timeout));
  connection.stream.async_connect(endpoints_, [&](error_code error, const Tcp::endpoint&) {
    if (error) return done.emplace(error), void();
    http::async_write(connection.stream, request, [&](error_code failed, size_t) {
      if (failed) return done.emplace(failed), void();
      http::async_read(connection.stream, connection.buffer, parser, [&](error_code last, size_t) { done = last; });
    });
  });
  // The stream's own timeout comes first, so that every step has ended.
  while (!done) RunFor(timeout + absl::Seconds(1), [&] { return done.has_value(); });
  const std::string where = Concat(target_.address.host, ":", target_.address.port);
  if (*done) {
    return absl::UnavailableError(Concat("cannot ask http://", where, target_.path, "/models: ", done->message()));
  }
  if (parser.get().result() != http::status::ok) {
    const std::string reason = Concat("http://", where, target_.path, "/models answered with HTTP status ",
                                      parser.get().result_int(), ": ", ErrorMessage(parser.get().body()));
    return parser.get().result() == http::status::not_found ? absl::NotFoundError(reason)
                                                            : absl::UnavailableError(reason);
  }
  return ParseModels(parser.get().body());
}

OpenAiTarget::OpenAiTarget(std::unique_ptr<Io> io) : io_(std::move(io)) {}
OpenAiTarget::~OpenAiTarget() = default;

absl::StatusOr<std::unique_ptr<OpenAiTarget>> OpenAiTarget::Create(const OpenAiOptions& options,
                                                                   absl::Duration timeout) {
  BATON_ASSIGN_OR_RETURN(HttpTarget target, ParseHttpTarget(options.url));
  while (target.path.ends_with('/')) target.path.pop_back();
  if (target.path.empty()) target.path = "/v1";
  auto io = std::make_unique<Io>(std::move(target), options.api_key, options.completions);
  BATON_RETURN_IF_ERROR(io->Resolve(timeout));
  return std::unique_ptr<OpenAiTarget>(new OpenAiTarget(std::move(io)));
}

absl::StatusOr<std::vector<ServedModel>> OpenAiTarget::Models(absl::Duration timeout) { return io_->Models(timeout); }

void OpenAiTarget::Start(LoadRequest request, SteadyTime deadline, std::shared_ptr<RequestObserver> observer) {
  // The body is made here, so that the I/O thread only reads and writes.
  auto exchange = std::make_shared<Io::Exchange>(*io_, std::move(request), deadline, std::move(observer));
  io_->Post([io = io_.get(), exchange = std::move(exchange)] {
    io->running.insert(exchange);
    exchange->Start();
  });
}

void OpenAiTarget::CancelAll() {
  io_->Post([io = io_.get()] {
    for (const auto& exchange : io->running) exchange->Cancel();
  });
}

}  // namespace baton
