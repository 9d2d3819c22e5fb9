// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "router/worker_table.h"
#include "tests/status_matchers.h"
#include "worker_table_fixture.h"

namespace baton::router {
namespace {

v1::PageNews PagesOf(bool whole, std::initializer_list<PageKey> added) {
  v1::PageNews news;
  news.set_whole(whole);
  for (const PageKey page : added) news.add_added(page);
  return news;
}

class PagesTest : public WorkerTableTest {
 protected:
  // p1 and p2 with d1: both pairs ready. p2's pages are watched as `watch_`.
  void SetUp() override {
    Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
    Hear(2, StatusOf("p2", v1::WORKER_ROLE_PREFILL));
    for (const WorkerTable::WatchPages& watch : Advance().watch_pages) {
      ++watches_;
      if (watch.worker == 2) watch_ = watch;
    }
    table_.OnAssets(now_, "f1", AssetsNamed("f1"));
    ProbeAll(absl::OkStatus());
  }
  // A prompt of 40 tokens, whose full pages are 7 and 8. Reports come in between, so that nothing counts as sent.
  Placement PlacePrompt(uint32_t page_tokens = 16) {
    now_ += absl::Seconds(1);
    Hear(0, StatusOf("p1", v1::WORKER_ROLE_PREFILL));
    Hear(1, StatusOf("d1", v1::WORKER_ROLE_DECODE));
    Hear(2, StatusOf("p2", v1::WORKER_ROLE_PREFILL));
    return table_.Place(now_, {"m", "f1", "", 40, 50, {}, {7, 8}, page_tokens, {}}).placement;
  }
  // Of as many placements as there are pairs, how many go to p2.
  int TimesAtP2(uint32_t page_tokens = 16) {
    int times = 0;
    for (int i = 0; i < 2; ++i) times += PlacePrompt(page_tokens).prefill.key.id == "p2" ? 1 : 0;
    return times;
  }

  int watches_ = 0;
  WorkerTable::WatchPages watch_{};
};

TEST_F(PagesTest, EveryWorkerIsWatchedOnce) {
  EXPECT_EQ(watches_, 3);
  EXPECT_TRUE(Advance(absl::Seconds(1)).watch_pages.empty());
}

TEST_F(PagesTest, APromptGoesWhereItsPagesAre) {
  EXPECT_EQ(TimesAtP2(), 1) << "in turn";
  table_.OnPages(watch_, PagesOf(true, {7}));
  EXPECT_EQ(TimesAtP2(), 2);
  EXPECT_EQ(PlacePrompt().cached_tokens, 16u);
  table_.OnPages(watch_, PagesOf(false, {8}));
  EXPECT_EQ(PlacePrompt().cached_tokens, 32u);
  EXPECT_EQ(TimesAtP2(/*page_tokens=*/32), 1) << "pages of another size have other names";
}

TEST_F(PagesTest, WhatIsNotWatchedAnyMoreIsNotKnown) {
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 2);
  table_.OnPagesEnded(now_, watch_, absl::UnavailableError("gone"));
  EXPECT_EQ(TimesAtP2(), 1);
  const std::vector<WorkerTable::WatchPages> again = Advance(absl::Seconds(2)).watch_pages;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].worker, 2u);
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 1) << "of the watch before";
  table_.OnPages(again[0], PagesOf(true, {7, 8}));
  EXPECT_EQ(TimesAtP2(), 2);
}

TEST_F(PagesTest, ARestartedWorkerHasNoneAndAWatchOfItsOwn) {
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  Hear(2, StatusOf("p2", v1::WORKER_ROLE_PREFILL, /*epoch=*/2));
  const std::vector<WorkerTable::WatchPages> again = Advance().watch_pages;
  ASSERT_EQ(again.size(), 1u);
  table_.OnPages(watch_, PagesOf(true, {7, 8}));
  table_.OnPagesEnded(now_, watch_, absl::UnavailableError("gone"));
  EXPECT_TRUE(Advance(absl::Seconds(2)).watch_pages.empty()) << "the one before ended";
  ProbeAll(absl::OkStatus());
  EXPECT_EQ(PlacePrompt().cached_tokens, 0u);
}

TEST_F(PagesTest, AWorkerThatDoesNotTellIsReportedOnce) {
  const auto reports = [&](WorkerTable::WatchPages watch) {
    table_.OnPagesEnded(now_, watch, absl::UnimplementedError("WatchPages"));
    int count = 0;
    for (const WorkerTable::Event& event : Advance().events) count += event.name == "worker.pages_unknown" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(reports(watch_), 1);
  const std::vector<WorkerTable::WatchPages> again = Advance(absl::Seconds(2)).watch_pages;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(reports(again[0]), 0);
}

TEST_F(PagesTest, OnlyThePrefixPolicyFollowsPages) {
  WorkerTable table =
      TableOf({.peer_timeout = kPeerTimeout, .placement = {PlacementPolicy::kLeastLoaded, 512}}, {"a:1"});
  table.OnStatus(now_, 0, StatusOf("b1", v1::WORKER_ROLE_BOTH), [] { return nullptr; });
  EXPECT_TRUE(table.Advance(now_).watch_pages.empty());
  table.OnAssets(now_, "f1", AssetsNamed("f1"));
  for (const Placement& probe : table.Advance(now_).probe) table.OnProbed(now_, probe.pair, absl::OkStatus());
  ASSERT_OK_AND_ASSIGN(const ServedModel model, table.FindModel("m"));
  EXPECT_EQ(model.limits.page_tokens, 0u);
  ASSERT_OK_AND_ASSIGN(const ServedModel followed, table_.FindModel("m"));
  EXPECT_EQ(followed.limits.page_tokens, 16u);
}

}  // namespace
}  // namespace baton::router
