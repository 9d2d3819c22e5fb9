// SPDX-License-Identifier: Apache-2.0
// A server of OpenAI's completions API in the test's own process, which answers as it is told and records when it sent
// each event. HTTP/1.1 with kept connections, a thread for each.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/steady_time.h"

namespace baton::testing {

class FakeOpenAi final {
 public:
  // One request and its answer. Used by the request's handler only, and read afterwards.
  class Exchange {
   public:
    nlohmann::json body;
    std::string authorization;
    SteadyTime received;
    std::vector<SteadyTime> sent;  // the time just before each event was written

    // The answer's header, for a body of events.
    void BeginEvents();
    void SendEvent(std::string_view data);
    void SendRaw(std::string_view bytes);  // a piece of the body of events
    void EndEvents();
    void SendJson(int status, const std::string& body);
    // Ends the connection without an end of the answer.
    void Cut();
    // Waits until the client closes the connection, or the server ends.
    void WaitForClose();

   private:
    friend class FakeOpenAi;
    int fd_ = -1;
    bool keeps_connection_ = true;
  };

  using Handler = std::function<void(Exchange&)>;

  // A request uses the handler that is set when the request comes. Thread-safe.
  class HandlerSlot {
   public:
    HandlerSlot& operator=(Handler handler) {
      MutexLock lock(mutex_);
      handler_ = std::move(handler);
      return *this;
    }
    Handler Get() const {
      MutexLock lock(mutex_);
      return handler_;
    }

   private:
    mutable Mutex mutex_;
    Handler handler_ ABSL_GUARDED_BY(mutex_);
  };

  FakeOpenAi();
  ~FakeOpenAi();

  std::string url() const;
  int port() const { return port_; }
  std::vector<Exchange> exchanges() const;  // waits for the ends of those under way
  int connections() const;

  HandlerSlot on_completion;  // default: TokensAfter without delays
  // Set while no request is under way. Empty: there is no list of models.
  std::string models = R"({"data": [{"id": "tiny", "max_model_len": 4096, "meta": {"n_vocab": 1000}}]})";

 private:
  void Accept();
  void Serve(int fd);

  FileDescriptor listener_;
  int port_ = 0;
  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> fds_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // exchanges under way
  mutable CondVar ended_;
  std::vector<Exchange> exchanges_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

// Answers with `max_tokens` events of a token each: the first after `first`, each further after `gap`, then usage.
FakeOpenAi::Handler TokensAfter(absl::Duration first, absl::Duration gap);

}  // namespace baton::testing
