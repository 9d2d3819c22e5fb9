// SPDX-License-Identifier: Apache-2.0
// WriterMachine and ReceiverMachine do what the table says, for every state and every event, and nothing else: the
// Promela model is made of the same table.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "fifo_admission.h"
#include "kvtransfer/handoff/receiver_machine.h"
#include "kvtransfer/handoff/writer_machine.h"

namespace baton::handoff::transitions {
namespace {

struct Row {
  std::string to;
  std::string sends = "Nothing";
  std::string does = "Nothing";
  std::string tells = "Nothing";
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << "-> " << row.to << ", sends " << row.sends << ", does " << row.does << ", tells " << row.tells;
}
using Table = std::map<std::pair<std::string, std::string>, Row>;  // by state and event

constexpr AttemptKey kKey{.request = {1, 2}, .attempt = 3};
constexpr int kTokens = 5;  // two pages
constexpr int kPageTokens = 4;
constexpr int kLayers = 1;

std::string NameOf(const Message& message) {
  if (const auto* aborted = std::get_if<Aborted>(&message)) {
    return aborted->cause == Cause::kFinished ? "AbortedFinished" : "Aborted";
  }
  if (const auto* committed = std::get_if<Committed>(&message)) {
    return committed->error.empty() ? "Committed" : "CommittedError";
  }
  constexpr const char* kNames[] = {"Reserve", "Queued", "Granted", "Refused", "CancelReserve",
                                    "Commit",  "",       "Revoke",  ""};
  return kNames[message.index()];
}

// ------------------------------------------------------------------------------------------------------------ writer

const Table& WriterTable() {
  static const Table table = {
#define WRITER(from, event, to, sends, does, tells) {{#from, #event}, {#to, #sends, #does, #tells}},
#include "kvtransfer/handoff/transitions.def"
  };
  return table;
}

const std::vector<std::pair<std::string, WriterMachine::Event>>& WriterEvents() {
  static const std::vector<std::pair<std::string, WriterMachine::Event>> events = {
      {"Start", WriterMachine::Start{}},
      {"Queued", Message(Queued{kKey})},
      {"Granted", Message(Granted{kKey, {PageId{1}, PageId{2}}, {0, 1}})},
      {"GrantedUnusable", Message(Granted{kKey, {PageId{1}}, {0}})},
      {"Refused", Message(Refused{kKey, Cause::kUnknownAttempt, ""})},
      {"Revoke", Message(Revoke{kKey})},
      {"AbortCancelled", WriterMachine::Abort{Cause::kCancelled}},
      {"AbortFinished", WriterMachine::Abort{Cause::kFinished}},
      {"PutLayer", WriterMachine::PutLayer{0, 0, {PageId{8}, PageId{9}}}},
      {"FlushPuts", WriterMachine::FlushPuts{}},
      {"CommitSequence", WriterMachine::CommitSequence{{7}}},
      {"FlushDone", WriterMachine::FlushDone{}},
      {"FlushFailed", WriterMachine::FlushFailed{absl::UnavailableError("broken")}},
      {"PeerGivenUp", WriterMachine::PeerGivenUp{absl::UnavailableError("not heard")}},
      {"PeerRevoked", WriterMachine::PeerRevoked{absl::UnavailableError("gone")}},
      {"Committed", Message(Committed{kKey, ""})},
      {"CommittedError", Message(Committed{kKey, "dropped"})},
  };
  return events;
}

const WriterMachine::Event& WriterEvent(const std::string& name) {
  for (const auto& [event_name, event] : WriterEvents()) {
    if (event_name == name) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return WriterEvents()[0].second;
}

// A way from New to each state.
const std::map<std::string, std::vector<std::string>>& WaysOfWriter() {
  static const std::map<std::string, std::vector<std::string>> ways = {
      {"New", {}},
      {"Reserving", {"Start"}},
      {"Queued", {"Start", "Queued"}},
      {"Granted", {"Start", "Granted"}},
      {"FlushReport", {"Start", "Granted", "PutLayer", "FlushPuts"}},
      {"FlushCommit", {"Start", "Granted", "PutLayer", "CommitSequence"}},
      {"FlushRevoke", {"Start", "Granted", "Revoke"}},
      {"FlushAbort", {"Start", "Granted", "AbortCancelled"}},
      {"FlushFinished", {"Start", "Granted", "AbortFinished"}},
      {"Flushed", {"Start", "Granted", "PutLayer", "FlushPuts", "FlushDone"}},
      {"Committing", {"Start", "Granted", "PutLayer", "CommitSequence", "FlushDone"}},
      {"Ended", {"Start", "Refused"}},
  };
  return ways;
}

const KvLayout& Layout() {
  static const KvLayout layout(kLayers, {.page_tokens = kPageTokens});
  return layout;
}

WriterMachine WriterIn(const std::string& state) {
  WriterMachine writer({&Layout(), 100}, {kKey, kTokens, {}});
  for (const std::string& event : WaysOfWriter().at(state)) writer.On(WriterEvent(event));
  return writer;
}

// The five states of flushing look alike from outside; what they do next tells them apart.
std::string StateName(const WriterMachine& writer) {
  switch (writer.state()) {
    case WriterMachine::State::kNew: return "New";
    case WriterMachine::State::kReserving: return "Reserving";
    case WriterMachine::State::kQueued: return "Queued";
    case WriterMachine::State::kGranted: return "Granted";
    case WriterMachine::State::kFlushed: return "Flushed";
    case WriterMachine::State::kCommitting: return "Committing";
    case WriterMachine::State::kEnded: return "Ended";
    case WriterMachine::State::kFlushing: break;
  }
  WriterMachine copy = writer;
  std::string fence;
  bool released = false;
  for (const WriterMachine::Action& action : copy.On(WriterMachine::FlushDone{})) {
    if (const auto* send = std::get_if<WriterMachine::Send>(&action)) fence = NameOf(send->message);
    released |= std::holds_alternative<WriterMachine::Release>(action);
  }
  if (copy.state() == WriterMachine::State::kFlushed) return "FlushReport";
  if (fence == "Commit") return "FlushCommit";
  if (fence == "AbortedFinished") return "FlushFinished";
  return released ? "FlushAbort" : "FlushRevoke";
}

Row Outcome(const WriterMachine& writer, const std::vector<WriterMachine::Action>& actions) {
  Row row{.to = StateName(writer)};
  for (const WriterMachine::Action& action : actions) {
    if (const auto* send = std::get_if<WriterMachine::Send>(&action)) {
      EXPECT_EQ(row.sends, "Nothing");
      row.sends = NameOf(send->message);
      continue;
    }
    constexpr const char* kNames[] = {"",        "Put",     "Flush",  "Disconnect", "Queued",
                                      "Granted", "Flushed", "Finish", "Fail",       "Release"};
    std::string& place = action.index() <= 3 ? row.does : row.tells;
    EXPECT_EQ(place, "Nothing");
    place = kNames[action.index()];
  }
  return row;
}

TEST(TransitionsTest, TheWriterKeepsToTheTable) {
  size_t rows_met = 0;
  for (const auto& [state, way] : WaysOfWriter()) {
    ASSERT_EQ(StateName(WriterIn(state)), state);
    for (const auto& [name, event] : WriterEvents()) {
      WriterMachine writer = WriterIn(state);
      std::vector<WriterMachine::Action> actions = writer.On(event);
      // A handoff that has ended may be forgotten; this speaks for it.
      const auto* message = std::get_if<Message>(&event);
      if (state == "Ended" && message != nullptr) {
        if (const auto answer = WriterMachine::AnswerToUnknown(*message))
          actions.emplace_back(WriterMachine::Send{*answer});
      }
      const auto row = WriterTable().find({state, name});
      rows_met += row == WriterTable().end() ? 0 : 1;
      EXPECT_EQ(Outcome(writer, actions), row == WriterTable().end() ? Row{.to = state} : row->second)
          << state << ", " << name;
    }
  }
  EXPECT_EQ(rows_met, WriterTable().size()) << "the table has a state or an event that does not exist";
}

// ---------------------------------------------------------------------------------------------------------- receiver

const Table& ReceiverTable() {
  static const Table table = {
#define RECEIVER(from, event, to, sends, does, tells) {{#from, #event}, {#to, #sends, #does, #tells}},
#include "kvtransfer/handoff/transitions.def"
  };
  return table;
}

constexpr PeerId kPeer{1};
constexpr PeerId kOther{2};
constexpr AttemptKey kOtherKey{.request = {3, 4}, .attempt = 1};
constexpr int kPages = 2;                       // of kTokens, put by the writer
constexpr int kOthersTokens = 8 * kPageTokens;  // 9 pages, with that to grow into
constexpr int kFree = 10;
constexpr int kTotal = 11;

// A pool that counts.
class CountingPages final : public FifoAdmission {
 public:
  CountingPages() : FifoAdmission(/*max_waiting=*/10) {}
  void Release(std::span<const PageId> pages) override { free += static_cast<int>(pages.size()); }
  void SetQuarantined(std::span<const PageId> pages, bool quarantined) override {
    quarantined_ += quarantined ? static_cast<int>(pages.size()) : -static_cast<int>(pages.size());
  }

  int free = kFree + 9;

 protected:
  GrantedPages Allocate(int count, std::span<const PageHash>) override {
    if (free < count) return {};
    free -= count;
    GrantedPages granted;
    for (int i = 0; i < count; ++i) granted.pages.push_back(PageId{next_++});
    return granted;
  }
  int usable_pages() const override { return kTotal - quarantined_; }

 private:
  uint32_t next_ = 0;
  int quarantined_ = 0;
};

// One attempt's receiver, and another peer that was granted most of the pages.
class ReceiverWorld {
 public:
  ReceiverWorld() {
    receiver_.On(ReceiverMachine::PeerUp{kPeer}, pages_);
    receiver_.On(ReceiverMachine::PeerUp{kOther}, pages_);
    (void)receiver_.Open(kOtherKey, absl::Time());
    receiver_.On(ReceiverMachine::From{kOther, Reserve{kOtherKey, kOthersTokens, {}}}, pages_);
  }

  std::vector<ReceiverMachine::Action> Do(const std::string& event) {
    if (event == "Open") {
      (void)receiver_.Open(kKey, absl::Time());
      return {};
    }
    if (event == "Reserve") pages_.free = 0;
    if (event == "Room") {
      pages_.free = kFree;
      return receiver_.On(ReceiverMachine::Decided{}, pages_);
    }
    if (event == "Unservable") {
      return receiver_.On(ReceiverMachine::PeerChanged{kOther, PeerState::kSilent, absl::OkStatus()}, pages_);
    }
    if (event == "Close") return receiver_.On(ReceiverMachine::Close{kKey}, pages_);
    if (event == "PeerGivenUp") {
      return receiver_.On(ReceiverMachine::PeerChanged{kPeer, PeerState::kGivenUp, absl::UnavailableError("not heard")},
                          pages_);
    }
    if (event == "PeerRevoked") {
      return receiver_.On(ReceiverMachine::PeerChanged{kPeer, PeerState::kRevoked, absl::UnavailableError("gone")},
                          pages_);
    }
    return receiver_.On(ReceiverMachine::From{kPeer, MessageOf(event)}, pages_);
  }

  std::string state() const {
    const std::optional<ReceiverMachine::State> state = receiver_.state(kKey);
    if (!state.has_value()) return "None";
    constexpr const char* kNames[] = {"Open", "Queued", "Granted", "Revoking", "Received"};
    return kNames[static_cast<int>(*state)];
  }
  int free() const { return pages_.free; }

 private:
  static Message MessageOf(const std::string& event) {
    if (event == "Reserve" || event == "ReserveWithRoom") return Reserve{kKey, kTokens, {}};
    if (event == "ReserveTooLarge") return Reserve{kKey, 1000, {}};
    if (event == "CancelReserve") return CancelReserve{kKey};
    if (event == "Aborted") return Aborted{kKey, Cause::kCancelled};
    if (event == "AbortedFinished") return Aborted{kKey, Cause::kFinished};
    Commit commit{kKey, kTokens, {7}, 0};
    uint64_t sum = 0;
    for (uint32_t page = 0; page < kPages; ++page) sum += BlockTag(0, PageId{9 + page});  // behind the other's
    commit.tag = CommitTag(kKey, kTokens, sum) + (event == "CommitUnfit" ? 1 : 0);
    return commit;
  }

  CountingPages pages_;
  ReceiverMachine receiver_{{.layout = &Layout(), .pages_total = kTotal, .max_attempts = 10}};
};

const std::vector<std::string> kReceiverEvents = {
    "Open",    "Reserve", "ReserveWithRoom", "ReserveTooLarge", "Room",        "Unservable",  "CancelReserve",
    "Aborted", "Close",   "AbortedFinished", "Commit",          "CommitUnfit", "PeerGivenUp", "PeerRevoked"};

const std::map<std::string, std::vector<std::string>>& WaysOfReceiver() {
  static const std::map<std::string, std::vector<std::string>> ways = {
      {"None", {}},
      {"Open", {"Open"}},
      {"Queued", {"Open", "Reserve"}},
      {"Granted", {"Open", "ReserveWithRoom"}},
      {"Revoking", {"Open", "ReserveWithRoom", "Close"}},
      {"Received", {"Open", "ReserveWithRoom", "Commit"}},
  };
  return ways;
}

Row Outcome(const ReceiverWorld& world, int free_before, const std::vector<ReceiverMachine::Action>& actions) {
  Row row{.to = world.state()};
  for (const ReceiverMachine::Action& action : actions) {
    if (const auto* send = std::get_if<ReceiverMachine::Send>(&action)) {
      EXPECT_EQ(row.sends, "Nothing");
      row.sends = NameOf(send->message);
    } else {
      EXPECT_EQ(row.tells, "Nothing");
      row.tells = std::holds_alternative<ReceiverMachine::Received>(action) ? "Received"
                  : std::holds_alternative<ReceiverMachine::Failed>(action) ? "Failed"
                                                                            : "Finished";
    }
  }
  const int change = world.free() - free_before;
  row.does = row.tells == "Received" ? "HandOver" : change < 0 ? "Take" : change > 0 ? "Release" : "Nothing";
  return row;
}

TEST(TransitionsTest, TheReceiverKeepsToTheTable) {
  size_t rows_met = 0;
  for (const auto& [state, way] : WaysOfReceiver()) {
    for (const std::string& event : kReceiverEvents) {
      ReceiverWorld world;
      for (const std::string& step : way) world.Do(step);
      ASSERT_EQ(world.state(), state);
      const int free_before = event == "Room" ? kFree : event == "Reserve" ? 0 : world.free();
      const std::vector<ReceiverMachine::Action> actions = world.Do(event);
      const Row outcome = Outcome(world, free_before, actions);
      const auto row = ReceiverTable().find({state, event});
      rows_met += row == ReceiverTable().end() ? 0 : 1;
      EXPECT_EQ(outcome, row == ReceiverTable().end() ? Row{.to = state} : row->second) << state << ", " << event;
    }
  }
  EXPECT_EQ(rows_met, ReceiverTable().size()) << "the table has a state or an event that does not exist";
}

}  // namespace
}  // namespace baton::handoff::transitions
