// SPDX-License-Identifier: Apache-2.0
#include "tests/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace baton::testing {
namespace {

absl::StatusOr<std::string> HttpGet(const std::string& host, int port, const std::string& path,
                                    absl::Duration timeout) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  const std::string request = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string response;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    char piece[16384];
    ssize_t count = 0;
    while ((count = read(fd, piece, sizeof(piece))) > 0) response.append(piece, static_cast<size_t>(count));
  }
  close(fd);
  const size_t body = response.find("\r\n\r\n");
  if (!absl::StartsWith(response, "HTTP/1.1 200") || body == std::string::npos) {
    return absl::UnavailableError(absl::StrCat("no answer to GET ", path, " on port ", port, ": \"",
                                               response.substr(0, response.find('\r')), "\""));
  }
  return response.substr(body + 4);
}

// {label="value",...}: none of ours has a quote in it.
std::map<std::string, std::string> ParseLabels(const std::string& text) {
  std::map<std::string, std::string> labels;
  for (size_t at = 0; text.find("=\"", at) != std::string::npos;) {
    const size_t equals = text.find("=\"", at);
    const size_t end = text.find('"', equals + 2);
    labels[text.substr(at + 1, equals - at - 1)] = text.substr(equals + 2, end - equals - 2);
    at = end + 1;
  }
  return labels;
}

}  // namespace

absl::StatusOr<MetricsPage> MetricsPage::Fetch(int port, const std::string& host, absl::Duration timeout) {
  const absl::StatusOr<std::string> text = HttpGet(host, port, "/metrics", timeout);
  if (!text.ok()) return text.status();
  return Parse(*text);
}

MetricsPage MetricsPage::Parse(const std::string& text) {
  MetricsPage page;
  page.text_ = text;
  for (const absl::string_view piece : absl::StrSplit(text, '\n')) {
    const std::string line(piece);
    // name{label="value",...} number
    const size_t space = line.rfind(' ');
    double value = 0;
    if (absl::StartsWith(line, "#") || space == std::string::npos ||
        !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    const size_t brace = std::min(line.find('{'), space);
    page.series_.push_back(
        {.name = line.substr(0, brace), .labels = ParseLabels(line.substr(brace, space - brace)), .value = value});
  }
  return page;
}

double MetricsPage::Sum(const std::string& name, const std::map<std::string, std::string>& labels) const {
  double sum = 0;
  for (const MetricsSeries& series : series_) {
    const bool matches = std::all_of(labels.begin(), labels.end(), [&series](const auto& label) {
      const auto it = series.labels.find(label.first);
      return it != series.labels.end() && it->second == label.second;
    });
    if (series.name == name && matches) sum += series.value;
  }
  return sum;
}

}  // namespace baton::testing
