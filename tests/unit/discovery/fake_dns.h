// SPDX-License-Identifier: Apache-2.0
// A DNS server on the loopback (UDP) that knows a few records, fails or stays silent as told. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/event_fd.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"

namespace baton::router {

class FakeDns {
 public:
  enum class Mode { kAnswers, kFails, kSilent };

  FakeDns();
  ~FakeDns();

  std::string server() const;  // "address:port"
  void Set(Mode mode);
  void SetAddresses(const std::string& name, std::vector<std::string> addresses);  // A or AAAA records, by form
  void SetServices(const std::string& name, std::vector<std::pair<std::string, int>> targets);  // SRV records
  void Remove(const std::string& name);
  int queries() const;

 private:
  struct Records {
    std::vector<std::string> addresses;
    std::vector<std::pair<std::string, int>> services;
  };

  void Run();
  std::string Answer(const std::string& query) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FileDescriptor socket_;
  EventFd stop_;
  mutable Mutex mutex_;
  Mode mode_ ABSL_GUARDED_BY(mutex_) = Mode::kAnswers;
  std::map<std::string, Records> records_ ABSL_GUARDED_BY(mutex_);
  int queries_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace baton::router
