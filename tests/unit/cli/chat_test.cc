// SPDX-License-Identifier: Apache-2.0
// `baton chat`, with a pipe and with a pseudo-terminal as its input.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "cli/app.h"
#include "common/steady_time.h"
#include "fake_router.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ChatTest : public ::testing::Test {
 protected:
  // Returns the last message of each request so far.
  std::vector<std::string> Questions() const {
    std::vector<std::string> questions;
    for (const v1::GenerateRequest& request : router_.requests()) {
      questions.push_back(request.chat().messages().rbegin()->content());
    }
    return questions;
  }

  FakeRouter router_;
};

TEST_F(ChatTest, ChatKeepsTheHistory) {
  const CliResult run =
      RunCli({"chat", "--target", router_.target(), "--system", "s", "--max-tokens", "9"}, "first\n\nsecond\n");

  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello world!\nHello world!\n");
  const auto requests = router_.requests();
  ASSERT_EQ(requests.size(), 2);
  EXPECT_EQ(requests[1].sampling().max_tokens(), 9u);
  std::vector<std::string> history;
  for (const v1::ChatMessage& message : requests[1].chat().messages()) {
    history.push_back(message.role() + ":" + message.content());
  }
  EXPECT_THAT(history, ElementsAre("system:s", "user:first", "assistant:Hello world!", "user:second"));
}

TEST_F(ChatTest, AnInterruptEndsTheChatsAnswerButNotTheChat) {
  Interrupt interrupt;
  int call = 0;
  router_.on_generate = [&](grpc::ServerContext& context, const v1::GenerateRequest& request, auto& writer) {
    if (++call > 1) return EchoAnswer(context, request, writer);
    writer.Write(MakeChunk(0, "Hel", {1}));
    interrupt.Trigger();
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };

  const CliResult run = RunCli({"chat", "--target", router_.target()}, "first\nsecond\n", &interrupt);

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Hello world!\n"));
  EXPECT_EQ(router_.requests().size(), 2);
}

TEST_F(ChatTest, StopsWhenTheAnswerCannotBeWritten) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const CliResult run = RunCli({"chat", "--target", router_.target()}, "first\nsecond\n", nullptr, full);
  close(full);
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "baton chat: the output cannot be written: No space left on device\n");
  EXPECT_THAT(Questions(), ElementsAre("first"));
}

constexpr char kUp[] = "\x1b[A";
constexpr char kLeft[] = "\x1b[D";
constexpr char kCtrlD[] = "\x04";

// A chat on a pseudo-terminal, where the test types into the chat's line editor.
class TerminalChatTest : public ChatTest {
 protected:
  TerminalChatTest() {
    EXPECT_EQ(openpty(&keyboard_, &terminal_, nullptr, nullptr, nullptr), 0);
    screen_reader_ = std::thread([this] {
      char piece[256];
      for (ssize_t count; (count = read(keyboard_, piece, sizeof(piece))) > 0;) {
        MutexLock lock(mutex_);
        screen_.append(piece, static_cast<size_t>(count));
      }
    });
    chat_ = std::thread([this] {
      const int out_fd = dup(terminal_);
      OutputStream out(out_fd);
      std::ostringstream err;
      const Console console = {.input_fd = terminal_,
                               .input_is_terminal = true,
                               .err_is_terminal = true,
                               .screen_fd = terminal_,
                               .out = &out,
                               .err = &err,
                               .interrupt = &interrupt_};
      const std::string target = "--target=" + router_.target();
      const char* argv[] = {"baton", "chat", target.c_str()};
      code_ = RunBaton(3, argv, console);
      out.flush();
      close(out_fd);
    });
  }
  ~TerminalChatTest() override {
    interrupt_.Trigger();  // ends an answer that a failed test left running
    if (chat_.joinable()) End();
    close(terminal_);  // the reader's read fails from now on
    screen_reader_.join();
    close(keyboard_);
  }

  void Type(const std::string& keys) const {
    ASSERT_EQ(write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  std::string Screen() {
    MutexLock lock(mutex_);
    return screen_;
  }

  // Waits until `text` is on the screen `times` times.
  ::testing::AssertionResult WaitForScreen(const std::string& text, int times = 1) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    while (SteadyTime::Now() < deadline) {
      const std::string screen = Screen();
      int seen = 0;
      for (size_t at = 0; (at = screen.find(text, at)) != std::string::npos; at += text.size()) ++seen;
      if (seen >= times) return ::testing::AssertionSuccess();
      absl::SleepFor(absl::Milliseconds(2));
    }
    return ::testing::AssertionFailure() << "the screen shows: " << Screen();
  }

  // Types the key that ends the chat, until it does: typed before the editor has set the terminal up, the key is lost.
  // Returns the exit code.
  int End() {
    while (code_ < 0) {
      Type(kCtrlD);
      absl::SleepFor(absl::Milliseconds(20));
    }
    chat_.join();
    return code_;
  }

  Interrupt interrupt_;

 private:
  int keyboard_ = -1;
  int terminal_ = -1;
  std::thread screen_reader_;
  std::thread chat_;
  std::atomic<int> code_ = -1;
  Mutex mutex_;
  std::string screen_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(TerminalChatTest, ArrowUpRepeatsTheLastLine) {
  ASSERT_TRUE(WaitForScreen("> "));
  Type("first\n");
  ASSERT_TRUE(WaitForScreen("Hello world!"));
  Type(std::string(kUp) + "\n");
  ASSERT_TRUE(WaitForScreen("Hello world!", 2));
  EXPECT_EQ(End(), 0);
  EXPECT_THAT(Questions(), ElementsAre("first", "first"));
}

TEST_F(TerminalChatTest, ArrowLeftMovesOverWholeCharacters) {
  ASSERT_TRUE(WaitForScreen("> "));
  Type(
      "na\xC3\xAF"
      "e" +
      std::string(kLeft) + "v" + kLeft + kLeft +
      "\b"
      "\xE6\x9D\xB1\n");
  ASSERT_TRUE(WaitForScreen("Hello world!"));
  EXPECT_EQ(End(), 0);
  EXPECT_THAT(Questions(), ElementsAre("n\xE6\x9D\xB1\xC3\xAF"
                                       "ve"));
}

TEST_F(TerminalChatTest, ACtrlDTypedDuringTheAnswerDoesNotQuoteTheNextKey) {
  std::atomic<bool> typed = false;
  router_.on_generate = [&typed](grpc::ServerContext& context, const v1::GenerateRequest& request, auto& writer) {
    while (!typed && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return EchoAnswer(context, request, writer);
  };
  ASSERT_TRUE(WaitForScreen("> "));
  Type("first\n");
  while (router_.requests().empty()) absl::SleepFor(absl::Milliseconds(1));
  Type(kCtrlD);
  typed = true;
  ASSERT_TRUE(WaitForScreen("Hello world!"));
  EXPECT_EQ(End(), 0);
}

TEST_F(TerminalChatTest, AnInterruptClearsTheLineAndTheChatGoesOn) {
  ASSERT_TRUE(WaitForScreen("> "));
  Type("forget this");
  ASSERT_TRUE(WaitForScreen("forget this"));
  interrupt_.Trigger();
  ASSERT_TRUE(WaitForScreen("^C"));
  ASSERT_TRUE(WaitForScreen("> ", 2));
  Type("second\n");
  ASSERT_TRUE(WaitForScreen("Hello world!"));
  EXPECT_EQ(End(), 0);
  EXPECT_THAT(Questions(), ElementsAre("second"));
}

TEST_F(TerminalChatTest, AnInterruptEndsTheAnswerAndTheChatGoesOn) {
  std::atomic<bool> began = false;
  router_.on_generate = [&began](grpc::ServerContext& context, const v1::GenerateRequest& request, auto& writer) {
    if (began.exchange(true)) return EchoAnswer(context, request, writer);
    writer.Write(MakeChunk(0, "Endless", {1}));
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  ASSERT_TRUE(WaitForScreen("> "));
  Type("first\n");
  ASSERT_TRUE(WaitForScreen("Endless"));
  interrupt_.Trigger();
  ASSERT_TRUE(WaitForScreen("> ", 2));
  Type("second\n");
  ASSERT_TRUE(WaitForScreen("Hello world!"));
  EXPECT_EQ(End(), 0);
  EXPECT_THAT(Screen(), Not(HasSubstr("CANCELLED")));
}

}  // namespace
}  // namespace baton::testing
