// SPDX-License-Identifier: Apache-2.0
#include "router/known_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace baton::router {
namespace {

v1::PageNews News(bool whole, std::initializer_list<PageKey> added, std::initializer_list<PageKey> removed = {}) {
  v1::PageNews news;
  news.set_whole(whole);
  for (const PageKey page : added) news.add_added(page);
  for (const PageKey page : removed) news.add_removed(page);
  return news;
}

TEST(KnownPagesTest, CountsThePagesThatAPromptBeginsWith) {
  KnownPages pages;
  const KnownPages::Slot worker = pages.Add();
  const std::vector<PageKey> prompt = {1, 2, 3, 4};
  EXPECT_EQ(pages.CountPrefix(prompt), std::vector<uint32_t>{0});
  pages.Apply(worker, News(true, {1, 2, 9}), 100);
  EXPECT_EQ(pages.CountPrefix(prompt), std::vector<uint32_t>{2});
  EXPECT_EQ(pages.CountPrefix({}), std::vector<uint32_t>{0});
  pages.Apply(worker, News(false, {3, 4}), 100);
  EXPECT_EQ(pages.CountPrefix(prompt), std::vector<uint32_t>{4});
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{7, 8}), std::vector<uint32_t>{0});
}

TEST(KnownPagesTest, ForgetsWhatTheWorkerForgets) {
  KnownPages pages;
  const KnownPages::Slot worker = pages.Add();
  pages.Apply(worker, News(true, {1, 2, 3}), 100);
  pages.Apply(worker, News(false, {}, {3}), 100);
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{1, 2, 3}), std::vector<uint32_t>{2});
  pages.Apply(worker, News(true, {5}), 100);
  EXPECT_EQ(pages.size(worker), 1u);
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{1, 2, 3}), std::vector<uint32_t>{0});
}

TEST(KnownPagesTest, KeepsNoMoreThanTheWorkerCan) {
  KnownPages pages;
  const KnownPages::Slot worker = pages.Add();
  pages.Apply(worker, News(true, {1, 2, 3, 4, 5}), 3);
  EXPECT_EQ(pages.size(worker), 3u);
  pages.Apply(worker, News(false, {6}, {1}), 3);
  EXPECT_EQ(pages.size(worker), 3u);
}

TEST(KnownPagesTest, AWorkerInTheSlotOfARemovedOneKnowsNothing) {
  KnownPages pages;
  const KnownPages::Slot gone = pages.Add();
  const KnownPages::Slot other = pages.Add();
  for (const KnownPages::Slot worker : {gone, other}) pages.Apply(worker, News(true, {1, 2}), 100);
  pages.Remove(gone);
  EXPECT_EQ(pages.Add(), gone);
  EXPECT_EQ(pages.size(gone), 0u);
  const std::vector<uint32_t> counts = pages.CountPrefix(std::vector<PageKey>{1, 2});
  EXPECT_EQ(counts[gone], 0u);
  EXPECT_EQ(counts[other], 2u);
}

// Workers that publish and evict pages at random, in the order in which a worker does.
TEST(KnownPagesTest, CountsAsIfEachWorkerWereAskedAlone) {
  std::mt19937_64 random(1);
  constexpr size_t kWorkers = 12;
  constexpr size_t kPrompts = 200;
  constexpr size_t kPages = 20;
  const auto name = [](size_t prompt, size_t page) { return page < 5 ? 1 + page : 1000 + 100 * prompt + page; };
  KnownPages pages;
  std::vector<std::vector<size_t>> held(kWorkers, std::vector<size_t>(kPrompts, 5));  // the first five are shared
  for (size_t worker = 0; worker < kWorkers; ++worker) pages.Apply(pages.Add(), News(true, {1, 2, 3, 4, 5}), 100'000);
  for (int round = 0; round < 20'000; ++round) {
    const size_t worker = random() % kWorkers;
    const size_t prompt = random() % kPrompts;
    const size_t before = held[worker][prompt];
    const size_t after = 5 + random() % (kPages - 4);
    v1::PageNews news;
    for (size_t page = before; page < after; ++page) news.add_added(name(prompt, page));
    for (size_t page = after; page < before; ++page) news.add_removed(name(prompt, page));
    held[worker][prompt] = after;
    pages.Apply(static_cast<KnownPages::Slot>(worker), news, 100'000);
    std::vector<PageKey> asked;
    const size_t asked_prompt = random() % kPrompts;
    for (size_t page = 0; page < kPages; ++page) asked.push_back(name(asked_prompt, page));
    const std::vector<uint32_t> counts = pages.CountPrefix(asked);
    for (size_t i = 0; i < kWorkers; ++i) ASSERT_EQ(counts[i], held[i][asked_prompt]) << "round " << round;
  }
  for (KnownPages::Slot worker = 0; worker < kWorkers; ++worker) {
    size_t expected = 5;
    for (const size_t of_prompt : held[worker]) expected += of_prompt - 5;
    EXPECT_EQ(pages.size(worker), expected);
    pages.Clear(worker);
    EXPECT_EQ(pages.size(worker), 0u);
  }
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{1}), std::vector<uint32_t>(kWorkers, 0));
}

}  // namespace
}  // namespace baton::router
