// SPDX-License-Identifier: Apache-2.0
#include "router/known_pages.h"

#include <gtest/gtest.h>

#include <initializer_list>
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
  const std::vector<PageKey> prompt = {1, 2, 3, 4};
  EXPECT_EQ(pages.CountPrefix(prompt), 0u);
  pages.Apply(News(true, {1, 2, 9}), 100);
  EXPECT_EQ(pages.CountPrefix(prompt), 2u);
  EXPECT_EQ(pages.CountPrefix({}), 0u);
  pages.Apply(News(false, {3, 4}), 100);
  EXPECT_EQ(pages.CountPrefix(prompt), 4u);
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{7, 8}), 0u);
}

TEST(KnownPagesTest, ForgetsWhatTheWorkerForgets) {
  KnownPages pages;
  pages.Apply(News(true, {1, 2, 3}), 100);
  pages.Apply(News(false, {}, {3}), 100);
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{1, 2, 3}), 2u);
  pages.Apply(News(true, {5}), 100);
  EXPECT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages.CountPrefix(std::vector<PageKey>{1, 2, 3}), 0u);
}

TEST(KnownPagesTest, KeepsNoMoreThanTheWorkerCan) {
  KnownPages pages;
  pages.Apply(News(true, {1, 2, 3, 4, 5}), 3);
  EXPECT_EQ(pages.size(), 3u);
  pages.Apply(News(false, {6}, {1}), 3);
  EXPECT_EQ(pages.size(), 3u);
}

}  // namespace
}  // namespace baton::router
