#include "server/table/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace cistern {
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

TEST(Arena, KeepsWhatIsWrittenWhenPagesBecomeHuge) {
  Arena arena;
  std::vector<char*> records;
  for (uint64_t i = 0; i < 200000; ++i) {  // 11 MB
    records.push_back(arena.Allocate(56));
    for (int j = 0; j < 7; ++j) std::memcpy(records.back() + 8 * j, &i, 8);
  }
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
}  // namespace cistern
