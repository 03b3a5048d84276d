#include "server/table/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "common/base/pages.h"

namespace cistern::server {
namespace {

TEST(Arena, RecordsAreAlignedAndDoNotOverlap) {
  Arena arena;
  std::map<char*, size_t> records;
  // Mixed sizes over more than two blocks.
  for (size_t i = 0, total = 0; total < 2 * Arena::kBlockBytes + 1000; ++i) {
    const size_t bytes = 16 + 8 * (i % 300);
    char* record = arena.Allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(record) % 8, 0u);
    std::memset(record, static_cast<int>(i % 251), bytes);
    ASSERT_TRUE(records.emplace(record, bytes).second);
    total += bytes;
  }
  char* end = nullptr;
  for (const auto& [record, bytes] : records) {
    ASSERT_GE(record, end);
    end = record + bytes;
  }
}

TEST(Arena, KeepsContentsWhenPagesBecomeHuge) {
  Arena arena;
  std::vector<char*> records;
  for (uint64_t i = 0; i < 200000; ++i) {  // 11 MB
    records.push_back(arena.Allocate(56));
    for (int j = 0; j < 7; ++j) std::memcpy(records.back() + 8 * j, &i, 8);
  }
  const std::vector<char*> pages = arena.TakeFullPages();
  EXPECT_EQ(pages.size(), CanCollapsePages() ? 5u : 0u);
  EXPECT_TRUE(arena.TakeFullPages().empty());
  for (char* page : pages) CollapsePages(page, kHugePageBytes);
  for (uint64_t i = 0; i < records.size(); ++i) {
    for (int j = 0; j < 7; ++j) ASSERT_EQ(std::memcmp(records[i] + 8 * j, &i, 8), 0) << i;
  }
}

TEST(Arena, ReusesAReleasedRecordForItsSizeOnly) {
  Arena arena;
  char* a = arena.Allocate(56);
  char* b = arena.Allocate(56);
  arena.Release(a, 56);
  arena.Release(b, 56);
  EXPECT_NE(arena.Allocate(64), a);
  const std::set<char*> reused = {arena.Allocate(56), arena.Allocate(56)};
  EXPECT_EQ(reused, (std::set<char*>{a, b}));
  EXPECT_EQ(reused.count(arena.Allocate(56)), 0u);
}

TEST(Arena, CountsUsedAndResidentBytes) {
  Arena arena;
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(arena.resident_bytes(), 0u);
  char* record = arena.Allocate(56);
  EXPECT_EQ(arena.used_bytes(), 56u);
  EXPECT_GT(arena.resident_bytes(), 0u);
  EXPECT_LE(arena.resident_bytes(), 4096u);  // a small table stays small
  arena.Release(record, 56);
  EXPECT_EQ(arena.used_bytes(), 0u);
}

TEST(Arena, RecordsFillTheRestOfALargePiece) {
  Arena arena;
  char* large = arena.AllocateLarge(1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % Arena::kLargeAlignment, 0u);
  char* record = arena.Allocate(56);
  std::memset(record, 7, 56);
  char* larger = arena.AllocateLarge(5 << 18);  // next to records, as when an index grows
  std::memset(larger, 1, 5 << 18);
  const size_t resident = arena.resident_bytes();
  arena.ReleaseLarge(large, 1 << 20);
  for (size_t bytes = 0; bytes + 56 <= 1 << 20; bytes += 56) {
    char* reused = arena.Allocate(56);
    ASSERT_GE(reused, large);
    ASSERT_LE(reused + 56, large + (1 << 20));
    std::memset(reused, 2, 56);
  }
  EXPECT_EQ(arena.resident_bytes(), resident);
  char* next = arena.Allocate(56);  // then the fresh rest of the block
  EXPECT_TRUE(next >= larger + (5 << 18) || next + 56 <= larger);
  EXPECT_EQ(record[0], 7);
  EXPECT_EQ(larger[0], 1);
  EXPECT_EQ(larger[(5 << 18) - 1], 1);
  EXPECT_EQ(arena.used_bytes(), (5 << 18) + (1 << 20) / 56 * 56 + 2 * 56);
}

TEST(Arena, LargePiecesAndRecordsDoNotOverlap) {
  Arena arena;
  std::mt19937_64 random(5);
  std::map<char*, std::pair<size_t, bool>> pieces;  // size, large
  for (int i = 0; i < 20000; ++i) {
    const bool large = random() % 500 == 0;
    if (random() % 3 == 0 && !pieces.empty()) {
      auto piece = pieces.lower_bound(reinterpret_cast<char*>(random()));
      if (piece == pieces.end()) piece = pieces.begin();
      if (piece->second.second) {
        arena.ReleaseLarge(piece->first, piece->second.first);
      } else {
        arena.Release(piece->first, piece->second.first);
      }
      pieces.erase(piece);
      continue;
    }
    const size_t bytes = large ? 64 * (1 + random() % 60000) : 8 * (2 + random() % 100);
    char* piece = large ? arena.AllocateLarge(bytes) : arena.Allocate(bytes);
    std::memset(piece, 1, bytes);
    const auto place = pieces.emplace(piece, std::make_pair(bytes, large));
    ASSERT_TRUE(place.second);
    const auto next = std::next(place.first);
    if (next != pieces.end()) {
      ASSERT_LE(piece + bytes, next->first);
    }
    if (place.first != pieces.begin()) {
      ASSERT_LE(std::prev(place.first)->first + std::prev(place.first)->second.first, piece);
    }
  }
}

TEST(Arena, TakesARecordAsLargeAsABlock) {
  Arena arena;
  char* a = arena.Allocate(Arena::kBlockBytes);
  char* b = arena.Allocate(Arena::kBlockBytes);
  std::memset(a, 1, Arena::kBlockBytes);
  std::memset(b, 2, Arena::kBlockBytes);
  EXPECT_EQ(a[Arena::kBlockBytes - 1], 1);
  EXPECT_EQ(arena.resident_bytes(), 2 * Arena::kBlockBytes);
}

}  // namespace
}  // namespace cistern::server
