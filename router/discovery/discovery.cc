// SPDX-License-Identifier: Apache-2.0
#include "router/discovery/discovery.h"

#include <poll.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/log.h"
#include "common/options.h"
#include "common/status_macros.h"
#include "common/strings.h"

namespace baton::router {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr char kFileSource[] = "workers-file";

absl::StatusOr<std::vector<WorkerSource>> ReadWorkersFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(Concat(path, ": cannot be read, expected a worker's address on each line"));
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(static_cast<size_t>(file.read(text.data(), static_cast<std::streamsize>(text.size())).gcount()));
  if (file.bad()) return absl::NotFoundError(Concat(path, ": cannot be read"));
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(Concat(path, ": longer than ", kMaxFileBytes, " bytes"));
  }
  absl::StatusOr<std::vector<WorkerSource>> sources = ParseWorkersFile(text);
  if (!sources.ok()) return absl::InvalidArgumentError(Concat(path, ": ", sources.status().message()));
  return sources;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Discovery>> Discovery::Start(DiscoveryOptions options, OnChange on_change) {
  std::unique_ptr<Discovery> discovery(new Discovery(std::move(options), std::move(on_change)));
  for (const std::string& entry : discovery->options_.workers) {
    BATON_ASSIGN_OR_RETURN(WorkerSource source, OfOption("workers", ParseWorkerSource(entry)));
    discovery->fixed_.push_back(std::move(source));
  }
  BATON_RETURN_IF_ERROR(OfOption("workers-file", discovery->ReadFile()));
  discovery->Report();
  if (discovery->options_.workers_file.empty() && discovery->Names().empty()) return discovery;
  discovery->thread_ = std::thread([self = discovery.get()] { self->Run(); });
  return discovery;
}

Discovery::~Discovery() {
  if (!thread_.joinable()) return;
  stop_.Signal();
  thread_.join();
}

absl::Status Discovery::ReadFile() {
  if (options_.workers_file.empty()) return absl::OkStatus();
  BATON_ASSIGN_OR_RETURN(of_file_, ReadWorkersFile(options_.workers_file));
  return absl::OkStatus();
}

void Discovery::Run() {
  pthread_setname_np(pthread_self(), "discovery");
  pollfd stopped = {.fd = stop_.fd(), .events = POLLIN, .revents = 0};
  do {
    Note(kFileSource, ReadFile());
    LookUpNames();
    Report();
  } while (poll(&stopped, 1, static_cast<int>(absl::ToInt64Milliseconds(options_.interval))) == 0);
}

std::vector<WorkerSource> Discovery::Names() const {
  std::vector<WorkerSource> names;
  for (const std::vector<WorkerSource>* sources : {&fixed_, &of_file_}) {
    std::ranges::copy_if(*sources, std::back_inserter(names),
                         [](const WorkerSource& source) { return source.kind != WorkerSource::Kind::kAddress; });
  }
  return names;
}

void Discovery::LookUpNames() {
  const std::vector<WorkerSource> names = Names();
  const auto is_gone = [&](const auto& known) {
    return std::ranges::find(names, known.first, &WorkerSource::entry) == names.end();
  };
  std::erase_if(resolved_, is_gone);
  std::erase_if(errors_, [&](const auto& error) { return error.first != kFileSource && is_gone(error); });
  if (names.empty()) return;
  std::vector<DnsAnswer> answers = LookUp(names, options_.dns, stop_);
  for (size_t i = 0; i < names.size(); ++i) {
    Note(names[i].entry, answers[i].status());
    if (!answers[i].ok() && !absl::IsNotFound(answers[i].status())) continue;
    std::map<std::string, std::optional<SteadyTime>>& known = resolved_[names[i].entry];
    const SteadyTime now = SteadyTime::Now();
    for (auto& [address, missing_since] : known) {
      if (!missing_since) missing_since = now;
    }
    if (answers[i].ok()) {
      for (const std::string& address : *answers[i]) known[address].reset();
    }
    std::erase_if(known, [&](const auto& entry) { return entry.second && now - *entry.second > options_.linger; });
  }
}

void Discovery::Report() {
  Addresses list;
  absl::flat_hash_set<std::string> seen;
  const auto add = [&](const std::string& address) {
    if (seen.insert(address).second) list.push_back(address);
  };
  for (const std::vector<WorkerSource>* sources : {&fixed_, &of_file_}) {
    for (const WorkerSource& source : *sources) {
      if (source.kind == WorkerSource::Kind::kAddress) {
        add(source.entry);
      } else if (const auto found = resolved_.find(source.entry); found != resolved_.end()) {
        for (const auto& [address, _] : found->second) add(address);
      }
    }
  }
  if (list == reported_) return;
  reported_ = std::move(list);
  on_change_(reported_);
}

void Discovery::Note(const std::string& source, const absl::Status& status) {
  const auto logged = errors_.find(source);
  const std::string error = status.ok() ? "" : std::string(status.message());
  if (error == (logged == errors_.end() ? "" : logged->second)) return;
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning, status.ok() ? "discovery.works_again" : "discovery.failed",
      {{"subject", source}, {"detail", error}});
  if (status.ok()) {
    errors_.erase(logged);
  } else {
    errors_[source] = error;
  }
}

}  // namespace baton::router
