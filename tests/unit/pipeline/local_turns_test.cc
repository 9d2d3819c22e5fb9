// What a decode engine tells its receiver about prompts that wait, turn by turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <memory>
#include <utility>
#include <vector>

#include "decode_worker/decode_engine.h"
#include "engine/kv/page_pool.h"
#include "engine/model/model.h"
#include "pipeline.h"
#include "tests/status_matchers.h"

namespace baton::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Its load is what the test says.
class ScriptedReceiver final : public HandoffReceiver {
 public:
  absl::Status OpenAttempt(const AttemptKey& /*key*/) override { return absl::OkStatus(); }
  void CloseAttempt(const AttemptKey& /*key*/) override {}
  void Poke() override {}
  void SetLocalSequences(int sequences, bool next) override { told_.emplace_back(sequences, next); }
  void StartDraining() override {}
  Load load() const override { return load_; }

  Load load_;
  std::vector<std::pair<int, bool>> told_;
};

class LastEvent final : public EventSink<v1::DecodeEvent> {
 public:
  void Write(v1::DecodeEvent event, bool /*last*/) override { event_ = std::move(event); }
  bool cancelled() const override { return false; }

  v1::DecodeEvent event_;
};

constexpr int kPoolOfTurns = 64;

class LocalTurnsTest : public ::testing::Test {
 protected:
  LocalTurnsTest()
      : metrics_(registry_, "tiny", "both"),
        model_(*Model::Load(TinyNode().model_folder, {.threads = 1, .kv_dtype = KvType::kF32})),
        pool_(*PagePool::Create(model_->kv_layout(), kPoolOfTurns)),
        engine_({.model = model_.get(),
                 .pool = pool_.get(),
                 .receiver = &receiver_,
                 .thread = &thread_,
                 .metrics = &metrics_,
                 .load = &load_},
                {.max_sequences = 4}) {}

  std::shared_ptr<LastEvent> Submit(uint64_t request) {
    Attempt attempt;
    attempt.key = {{0, request}, 1};
    attempt.prompt.assign(20, 5);
    attempt.sampling.max_tokens = 100;
    auto sink = std::make_shared<LastEvent>();
    engine_.SubmitLocal(std::move(attempt), sink);
    return sink;
  }
  std::vector<std::pair<int, bool>> ToldInATick() {
    receiver_.told_.clear();
    engine_.Tick();
    return receiver_.told_;
  }

  prometheus::Registry registry_;
  WorkerMetrics metrics_;
  WorkerLoadBoard load_;
  EngineThread thread_;  // never started: the test ticks
  std::unique_ptr<Model> model_;
  std::unique_ptr<PagePool> pool_;
  ScriptedReceiver receiver_;
  DecodeEngine engine_;
};

TEST_F(LocalTurnsTest, ATurnIsOverWithTheFirstPromptThatStarts) {
  receiver_.load_.received = 4;
  for (uint64_t request = 1; request <= 3; ++request) Submit(request);
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(0, true))) << "nobody else waits";
  receiver_.load_.queued = 4;  // they came meanwhile
  receiver_.load_.received = 2;
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(1, false), Pair(2, false)));
  EXPECT_THAT(ToldInATick(), IsEmpty()) << "the third waits, and it is not its turn";
  ++receiver_.load_.grants;
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(2, true)));
}

TEST_F(LocalTurnsTest, GrantsOfBeforeMakeNoTurn) {
  receiver_.load_.grants = 5;
  receiver_.load_.queued = 1;
  receiver_.load_.received = 3;
  Submit(1);
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(1, false)));
  Submit(2);
  EXPECT_THAT(ToldInATick(), IsEmpty());
}

TEST_F(LocalTurnsTest, NoneStartsBeforeAReservationThatMayNotBePassed) {
  receiver_.load_.queued = 1;
  receiver_.load_.queued_first = true;
  Submit(1);
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(0, true))) << "it is next, after that one";
  receiver_.load_.queued_first = false;
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(1, false)));
}

TEST_F(LocalTurnsTest, APromptThatNeedsPagesInQuarantineFailsWhoeversTurnItIs) {
  std::vector<PageRef> taken = *pool_->Allocate(kPoolOfTurns - 1);
  for (PageRef& page : taken) page.SetQuarantined(true);
  receiver_.load_.queued = 1;
  receiver_.load_.queued_first = true;
  const std::shared_ptr<LastEvent> sink = Submit(1);
  EXPECT_THAT(ToldInATick(), ElementsAre(Pair(0, false))) << "it has ended";
  EXPECT_EQ(sink->event_.failed().cause(), v1::CAUSE_QUARANTINED);
  for (PageRef& page : taken) page.SetQuarantined(false);
}

}  // namespace
}  // namespace baton::testing
