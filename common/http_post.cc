// SPDX-License-Identifier: Apache-2.0
#include "common/http_post.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "common/strings.h"

namespace baton {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr std::string_view kScheme = "http://";
constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr absl::Duration kSlice = absl::Milliseconds(50);

// Connects, sends and reads, each step in the completion of the one before.
class Exchange {
 public:
  Exchange(asio::io_context& io, http::request<http::string_body> request) : stream_(io), request_(std::move(request)) {
    answer_.body_limit(kMaxAnswerBytes);
  }

  void Start(const Tcp::endpoint& endpoint) {
    stream_.async_connect(endpoint, [this](error_code error) {
      if (error) return End("cannot be reached", error);
      Send();
    });
  }

  const std::optional<absl::Status>& result() const { return result_; }

 private:
  void Send() {
    http::async_write(stream_, request_, [this](error_code error, size_t) {
      if (error) return End("did not take the request", error);
      http::async_read(stream_, buffer_, answer_, [this](error_code failed, size_t) {
        if (failed) return End("did not answer", failed);
        const http::response<http::string_body>& answer = answer_.get();
        if (http::to_status_class(answer.result()) == http::status_class::successful) {
          result_ = absl::OkStatus();
        } else {
          result_ = absl::UnavailableError(Concat("answered with HTTP status ", answer.result_int()));
        }
      });
    });
  }
  void End(std::string_view what, const error_code& error) {
    result_ = absl::UnavailableError(Concat(what, ": ", error.message()));
  }

  beast::tcp_stream stream_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> answer_;
  std::optional<absl::Status> result_;
};

}  // namespace

absl::StatusOr<HttpTarget> ParseHttpTarget(std::string_view url) {
  const auto error = [url] {
    return absl::InvalidArgumentError(Concat("\"", url, "\" is not valid, expected http://host:port/path"));
  };
  if (!url.starts_with(kScheme)) return error();
  const std::string_view rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::StatusOr<HostPort> address = ParseHostPort(rest.substr(0, slash));
  if (!address.ok() || address->host.empty() || address->port == 0) return error();
  return HttpTarget{*address, slash == rest.size() ? "/" : std::string(rest.substr(slash))};
}

absl::Status HttpPost(const HttpTarget& target, std::string_view address, std::string_view content_type,
                      std::string body, absl::FunctionRef<absl::Duration()> time_left) {
  BATON_ASSIGN_OR_RETURN(const HostPort found, ParseHostPort(address));
  error_code error;
  const asio::ip::address ip = asio::ip::make_address(found.host, error);
  if (error) return absl::InvalidArgumentError(Concat("\"", address, "\" is no IP address with a port"));
  asio::io_context io(/*concurrency_hint=*/1);
  http::request<http::string_body> request(http::verb::post, target.path, /*version=*/11);
  request.set(http::field::host, Concat(target.address.host, ":", target.address.port));
  request.set(http::field::content_type, beast::string_view(content_type.data(), content_type.size()));
  request.keep_alive(false);
  request.body() = std::move(body);
  request.prepare_payload();
  Exchange exchange(io, std::move(request));
  exchange.Start(Tcp::endpoint(ip, static_cast<uint16_t>(found.port)));
  while (!exchange.result()) {
    const absl::Duration left = time_left();
    if (left <= absl::ZeroDuration()) return absl::UnavailableError("did not answer in time");
    io.run_for(absl::ToChronoNanoseconds(std::min(left, kSlice)));
  }
  return *exchange.result();
}

}  // namespace baton
