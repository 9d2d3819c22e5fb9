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

absl::StatusOr<std::string> HttpGet(int port, const std::string& path, absl::Duration timeout) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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

}  // namespace

absl::StatusOr<MetricsPage> MetricsPage::Fetch(int port, absl::Duration timeout) {
  const absl::StatusOr<std::string> text = HttpGet(port, "/metrics", timeout);
  if (!text.ok()) return text.status();
  return Parse(*text);
}

MetricsPage MetricsPage::Parse(const std::string& text) {
  MetricsPage page;
  for (const absl::string_view piece : absl::StrSplit(text, '\n')) {
    const std::string line(piece);
    // name{label="value",...} number
    const size_t space = line.rfind(' ');
    double value = 0;
    if (absl::StartsWith(line, "#") || space == std::string::npos ||
        !absl::SimpleAtod(line.substr(space + 1), &value)) {
      continue;
    }
    const std::string series = line.substr(0, space);
    const size_t brace = std::min(series.find('{'), series.size());
    page.series_.emplace(series.substr(0, brace), std::pair(series.substr(brace), value));
  }
  return page;
}

double MetricsPage::Sum(const std::string& name, const std::map<std::string, std::string>& labels) const {
  double sum = 0;
  const auto [first, last] = series_.equal_range(name);
  for (auto it = first; it != last; ++it) {
    const auto& [written, value] = it->second;
    const bool matches = std::all_of(labels.begin(), labels.end(), [&written = written](const auto& label) {
      return absl::StrContains(written, absl::StrCat(label.first, "=\"", label.second, "\""));
    });
    if (matches) sum += value;
  }
  return sum;
}

bool MetricsPage::Has(const std::string& name) const { return series_.count(name) > 0; }

}  // namespace baton::testing
