// SPDX-License-Identifier: Apache-2.0
#include "engine/kv/page_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/kv/prefix_index.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PageHash Named(uint8_t letter) { return {letter}; }

TEST(PageJournalTest, TellsWhatChangedSinceAVersion) {
  PageJournal journal(10);
  EXPECT_EQ(journal.Since(0), std::nullopt) << "who knows nothing needs all names";
  const uint64_t first = journal.version();
  journal.Add(Named('a'));
  const uint64_t second = journal.version();
  journal.Remove(Named('b'));
  EXPECT_THAT(journal.Since(first)->added, ElementsAre(Named('a')));
  EXPECT_THAT(journal.Since(first)->removed, ElementsAre(Named('b')));
  EXPECT_THAT(journal.Since(second)->added, IsEmpty());
  EXPECT_THAT(journal.Since(second)->removed, ElementsAre(Named('b')));
  EXPECT_EQ(journal.Since(second)->version, journal.version());
  EXPECT_THAT(journal.Since(journal.version())->removed, IsEmpty());
  EXPECT_EQ(journal.Since(journal.version() + 1), std::nullopt) << "of another journal";
}

TEST(PageJournalTest, OfANameTheLastChangeCounts) {
  PageJournal journal(10);
  const uint64_t first = journal.version();
  journal.Add(Named('a'));
  journal.Remove(Named('a'));
  EXPECT_THAT(journal.Since(first)->added, IsEmpty());
  EXPECT_THAT(journal.Since(first)->removed, ElementsAre(Named('a')));
  journal.Add(Named('a'));
  EXPECT_THAT(journal.Since(first)->added, ElementsAre(Named('a')));
  EXPECT_THAT(journal.Since(first)->removed, IsEmpty());
}

TEST(PageJournalTest, ForgetsWhatIsLongAgo) {
  PageJournal journal(2);
  const uint64_t first = journal.version();
  journal.Add(Named('a'));
  journal.Add(Named('b'));
  EXPECT_TRUE(journal.Since(first).has_value());
  journal.Add(Named('c'));
  EXPECT_EQ(journal.Since(first), std::nullopt);
}

// A follower who asks now and then knows what is there, whatever happens in between.
TEST(PageJournalTest, AFollowerOfAnIndexKnowsItsNames) {
  constexpr uint32_t kPages = 8;
  std::mt19937 random(1);
  PrefixIndex index(kPages);
  std::vector<PageId> free;
  for (uint32_t page = 0; page < kPages; ++page) free.push_back(PageId{page});
  std::set<PageHash> names;
  std::set<PageHash> known;
  uint64_t version = 0;
  for (int step = 0; step < 5000; ++step) {
    const PageHash name = Named(static_cast<uint8_t>(random() % 20));
    if (free.empty() || names.contains(name)) {
      const std::optional<PageId> page = index.Evict();
      if (page.has_value()) free.push_back(*page);
      std::erase_if(names, [&](const PageHash& held) { return !index.Find(held).has_value(); });
    } else {
      index.Insert(free.back(), name, std::nullopt);
      index.SetIdle(free.back());
      free.pop_back();
      names.insert(name);
    }
    if (random() % 10 != 0) continue;
    const PageNews news = index.NewsSince(version);
    version = news.version;
    if (news.whole) known.clear();
    for (const PageHash& removed : news.removed) known.erase(removed);
    known.insert(news.added.begin(), news.added.end());
    ASSERT_EQ(known, names) << "step " << step;
  }
}

}  // namespace
}  // namespace baton
