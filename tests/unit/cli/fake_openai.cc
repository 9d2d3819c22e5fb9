// SPDX-License-Identifier: Apache-2.0
#include "fake_openai.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace baton::testing {
namespace {

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) return;  // the client has gone
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// Reads until `buffer` has `size` bytes. Returns false when the client has closed the connection.
bool ReadUpTo(int fd, size_t size, std::string& buffer) {
  char piece[4096];
  while (buffer.size() < size) {
    const ssize_t count = recv(fd, piece, sizeof(piece), 0);
    if (count <= 0) return false;
    buffer.append(piece, static_cast<size_t>(count));
  }
  return true;
}

// Returns the value of a header field, whose name is in the form that Beast writes.
std::string HeaderField(const std::string& header, const std::string& name) {
  const size_t at = header.find(absl::StrCat("\r\n", name, ": "));
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 4;
  return header.substr(begin, header.find("\r\n", begin) - begin);
}

}  // namespace

void FakeOpenAi::Exchange::BeginEvents() {
  WriteAll(fd_, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void FakeOpenAi::Exchange::SendEvent(std::string_view data) {
  sent.push_back(SteadyTime::Now());
  SendRaw(absl::StrCat("data: ", std::string(data), "\n\n"));
}

void FakeOpenAi::Exchange::SendRaw(std::string_view bytes) {
  WriteAll(fd_, absl::StrFormat("%x\r\n%s\r\n", bytes.size(), std::string(bytes)));
}

void FakeOpenAi::Exchange::EndEvents() {
  SendRaw("data: [DONE]\n\n");
  WriteAll(fd_, "0\r\n\r\n");
}

void FakeOpenAi::Exchange::SendJson(int status, const std::string& text) {
  WriteAll(fd_, absl::StrCat("HTTP/1.1 ", status, " X\r\nContent-Type: application/json\r\nContent-Length: ",
                             text.size(), "\r\n\r\n", text));
}

void FakeOpenAi::Exchange::Cut() {
  keeps_connection_ = false;
  shutdown(fd_, SHUT_RDWR);
}

void FakeOpenAi::Exchange::WaitForClose() {
  char byte;
  while (recv(fd_, &byte, 1, 0) > 0) {
  }
  keeps_connection_ = false;
}

FakeOpenAi::FakeOpenAi() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  on_completion = TokensAfter({}, {});
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), SOMAXCONN) != 0 ||
      getsockname(listener_.get(), generic, &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeOpenAi::~FakeOpenAi() {
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(mutex_);
  for (const int fd : fds_) close(fd);
}

std::string FakeOpenAi::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::vector<FakeOpenAi::Exchange> FakeOpenAi::exchanges() const {
  MutexLock lock(mutex_);
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
  while (running_ > 0 && SteadyTime::Now() < deadline) ended_.WaitUntil(mutex_, deadline);
  return exchanges_;
}

int FakeOpenAi::connections() const {
  MutexLock lock(mutex_);
  return static_cast<int>(fds_.size());
}

void FakeOpenAi::Accept() {
  while (true) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    MutexLock lock(mutex_);
    fds_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void FakeOpenAi::Serve(int fd) {
  std::string buffer;
  while (true) {
    size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!ReadUpTo(fd, buffer.size() + 1, buffer)) return;
    }
    const std::string header = buffer.substr(0, end);
    buffer.erase(0, end + 4);
    const std::string length = HeaderField(header, "Content-Length");
    const size_t size = length.empty() ? 0 : std::stoul(length);
    if (!ReadUpTo(fd, size, buffer)) return;
    Exchange exchange;
    exchange.received = SteadyTime::Now();
    exchange.fd_ = fd;
    exchange.authorization = HeaderField(header, "Authorization");
    const std::string body = buffer.substr(0, size);
    buffer.erase(0, size);
    if (header.starts_with("GET /v1/models ")) {
      if (models.empty()) {
        exchange.SendJson(404, "{}");
      } else {
        exchange.SendJson(200, models);
      }
      continue;
    }
    if (!header.starts_with("POST /v1/completions ")) return exchange.SendJson(404, "{}");
    exchange.body = nlohmann::json::parse(body);
    {
      MutexLock lock(mutex_);
      ++running_;
    }
    on_completion.Get()(exchange);
    {
      MutexLock lock(mutex_);
      --running_;
      ended_.NotifyAll();
      exchanges_.push_back(exchange);
      if (stopped_) return;
    }
    if (!exchange.keeps_connection_) {
      shutdown(fd, SHUT_RDWR);
      return;
    }
  }
}

FakeOpenAi::Handler TokensAfter(absl::Duration first, absl::Duration gap) {
  return [first, gap](FakeOpenAi::Exchange& exchange) {
    const int tokens = exchange.body["max_tokens"];
    exchange.BeginEvents();
    for (int i = 0; i < tokens; ++i) {
      absl::SleepFor(i == 0 ? first : gap);
      exchange.SendEvent(R"({"choices": [{"text": "a", "finish_reason": null}]})");
    }
    exchange.SendRaw(absl::StrCat(R"(data: {"choices": [], "usage": {"prompt_tokens": )",
                                  exchange.body["prompt"].size(), R"(, "completion_tokens": )", tokens, "}}\n\n"));
    exchange.EndEvents();
  };
}

}  // namespace baton::testing
