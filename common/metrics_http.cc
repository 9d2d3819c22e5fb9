// SPDX-License-Identifier: Apache-2.0
#include "common/metrics_http.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "common/strings.h"

namespace baton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr int kMaxConnections = 16;
constexpr size_t kMaxRequestBytes = 8192;
constexpr std::chrono::seconds kTimeout(5);
constexpr std::string_view kPath = "/metrics";

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Response Answer(const Request& request, const MetricsHttp::Page& page) {
  const std::string_view target(request.target().data(), request.target().size());
  Response response(http::status::ok, request.version());
  response.keep_alive(false);
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  if (target.substr(0, target.find('?')) != kPath) {
    response.result(http::status::not_found);
    response.body() = Concat("not found, expected ", kPath, "\n");
  } else if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.result(http::status::method_not_allowed);
    response.set(http::field::allow, "GET, HEAD");
    response.body() = Concat(kPath, " takes GET and HEAD\n");
  } else {
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = page();
  }
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();  // Content-Length remains
  return response;
}

}  // namespace

// Everything but the constructor, Run and Stop is called on the thread of Run.
class MetricsHttp::Server {
 public:
  explicit Server(Page page) : page_(std::move(page)), io_(/*concurrency_hint=*/1), acceptor_(io_) {}
  ~Server() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    io_.stop();
    thread_.join();
  }

  error_code Listen(const HostPort& address) {
    error_code error;
    Tcp::resolver resolver(io_);
    const auto found = resolver.resolve(address.host, Concat(address.port), Tcp::resolver::passive, error);
    if (error) return error;
    const Tcp::endpoint endpoint = *found.begin();
    error = acceptor_.open(endpoint.protocol(), error);
    if (!error) error = acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) error = acceptor_.bind(endpoint, error);
    if (!error) error = acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    return error;
  }

  void Run() {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  int port() const { return port_; }

 private:
  // One client, from its connection to its answer. Lives in the operation that it waits for.
  class Connection : public std::enable_shared_from_this<Connection> {
   public:
    Connection(Server& server, Tcp::socket socket) : server_(server), stream_(std::move(socket)) {
      ++server_.connections_;
      parser_.header_limit(kMaxRequestBytes);
      parser_.body_limit(kMaxRequestBytes);
    }
    ~Connection() {
      --server_.connections_;
      server_.Accept();
    }

    void Read() {
      stream_.expires_after(kTimeout);
      http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](error_code error, size_t) {
        if (!error) self->Write();
      });
    }

   private:
    void Write() {
      response_ = Answer(parser_.get(), server_.page_);
      serializer_.emplace(response_);
      serializer_->split(parser_.get().method() == http::verb::head);
      stream_.expires_after(kTimeout);
      auto done = [self = shared_from_this()](error_code error, size_t) {
        if (!error) error = self->stream_.socket().shutdown(Tcp::socket::shutdown_send, error);
      };
      if (serializer_->split()) {
        http::async_write_header(stream_, *serializer_, std::move(done));
      } else {
        http::async_write(stream_, *serializer_, std::move(done));
      }
    }

    Server& server_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_{kMaxRequestBytes};
    http::request_parser<http::empty_body> parser_;
    Response response_;
    std::optional<http::response_serializer<http::string_body>> serializer_;
  };

  // Waits for the next client, unless it does so already or has all that it may have.
  void Accept() {
    if (stopping_ || accepting_ || connections_ >= kMaxConnections) return;
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
      accepting_ = false;
      if (error) return Retry();
      std::make_shared<Connection>(*this, std::move(socket))->Read();
      Accept();
    });
  }

  // Out of file descriptors, most likely: a loop would take a core.
  void Retry() {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  const Page page_;
  std::atomic<bool> stopping_ = false;
  bool accepting_ = false;
  int connections_ = 0;
  int port_ = 0;
  asio::io_context io_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_{io_};
  std::thread thread_;
};

MetricsHttp::MetricsHttp(std::unique_ptr<Server> server) : server_(std::move(server)) {}
MetricsHttp::~MetricsHttp() = default;

int MetricsHttp::port() const { return server_->port(); }

absl::StatusOr<std::unique_ptr<MetricsHttp>> MetricsHttp::Start(const HostPort& address, Page page) {
  auto server = std::make_unique<Server>(std::move(page));
  if (const error_code error = server->Listen(address)) {
    return absl::UnavailableError(
        Concat("cannot serve metrics on ", address.host, ":", address.port, ": ", error.message()));
  }
  server->Run();
  return std::unique_ptr<MetricsHttp>(new MetricsHttp(std::move(server)));
}

}  // namespace baton
