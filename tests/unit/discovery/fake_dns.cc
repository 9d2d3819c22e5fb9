// SPDX-License-Identifier: Apache-2.0
#include "fake_dns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::router {
namespace {

// RFC 1035, RFC 2782.
constexpr size_t kHeaderBytes = 12;
constexpr uint16_t kTypeA = 1;
constexpr uint16_t kTypeAaaa = 28;
constexpr uint16_t kTypeSrv = 33;
constexpr uint16_t kServFail = 2;
constexpr uint16_t kNxDomain = 3;

std::string Number(uint16_t value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }

std::string Labels(const std::string& name) {
  std::string bytes;
  for (const absl::string_view label : absl::StrSplit(name, '.', absl::SkipEmpty())) {
    bytes += static_cast<char>(label.size());
    bytes.append(label.data(), label.size());
  }
  return bytes + '\0';
}

// A record of the name that the question has.
std::string Record(uint16_t type, const std::string& data) {
  return Number(0xc000 | kHeaderBytes) + Number(type) + Number(1) + Number(0) + Number(0) +
         Number(static_cast<uint16_t>(data.size())) + data;
}

}  // namespace

FakeDns::FakeDns() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  thread_ = std::thread([this] { Run(); });
}

FakeDns::~FakeDns() {
  stop_.Signal();
  thread_.join();
}

std::string FakeDns::server() const {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

void FakeDns::Set(Mode mode) {
  MutexLock lock(mutex_);
  mode_ = mode;
}

void FakeDns::SetAddresses(const std::string& name, std::vector<std::string> addresses) {
  MutexLock lock(mutex_);
  records_[name].addresses = std::move(addresses);
}

void FakeDns::SetServices(const std::string& name, std::vector<std::pair<std::string, int>> targets) {
  MutexLock lock(mutex_);
  records_[name].services = std::move(targets);
}

void FakeDns::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  records_.erase(name);
}

int FakeDns::queries() const {
  MutexLock lock(mutex_);
  return queries_;
}

void FakeDns::Run() {
  pollfd polled[] = {{.fd = stop_.fd(), .events = POLLIN, .revents = 0},
                     {.fd = socket_.get(), .events = POLLIN, .revents = 0}};
  while (poll(polled, 2, -1) > 0 && polled[0].revents == 0) {
    char bytes[1500];
    sockaddr_in from = {};
    socklen_t size = sizeof(from);
    const ssize_t got = recvfrom(socket_.get(), bytes, sizeof(bytes), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < static_cast<ssize_t>(kHeaderBytes)) continue;
    MutexLock lock(mutex_);
    ++queries_;
    if (mode_ == Mode::kSilent) continue;
    const std::string answer = Answer({bytes, static_cast<size_t>(got)});
    sendto(socket_.get(), answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
  }
}

std::string FakeDns::Answer(const std::string& query) {
  std::string name;
  size_t at = kHeaderBytes;
  while (query[at] != '\0') {
    const auto size = static_cast<size_t>(query[at]);
    absl::StrAppend(&name, name.empty() ? "" : ".", query.substr(at + 1, size));
    at += 1 + size;
  }
  const auto type =
      static_cast<uint16_t>(static_cast<uint8_t>(query[at + 1]) << 8 | static_cast<uint8_t>(query[at + 2]));
  const std::string question = query.substr(kHeaderBytes, at + 5 - kHeaderBytes);
  const auto known = records_.find(absl::AsciiStrToLower(name));
  std::vector<std::string> answers;
  if (known != records_.end()) {
    for (const std::string& address : known->second.addresses) {
      const bool is_v6 = address.find(':') != std::string::npos;
      if (type != (is_v6 ? kTypeAaaa : kTypeA)) continue;
      std::string data(is_v6 ? 16 : 4, '\0');
      inet_pton(is_v6 ? AF_INET6 : AF_INET, address.c_str(), data.data());
      answers.push_back(Record(type, data));
    }
    for (const auto& [target, port] : known->second.services) {
      const std::string data = Number(0) + Number(1) + Number(static_cast<uint16_t>(port)) + Labels(target);
      if (type == kTypeSrv) answers.push_back(Record(type, data));
    }
  }
  const uint16_t code = mode_ == Mode::kFails ? kServFail : known == records_.end() ? kNxDomain : 0;
  if (code != 0) answers.clear();
  std::string message = query.substr(0, 2) + Number(0x8180 | code) + Number(1) +
                        Number(static_cast<uint16_t>(answers.size())) + Number(0) + Number(0) + question;
  for (const std::string& answer : answers) message += answer;
  return message;
}

}  // namespace baton::router
