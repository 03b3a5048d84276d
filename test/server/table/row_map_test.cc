#include "server/table/row_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

struct TestRow {
  std::vector<float> value;
  bool has_embedx = false;
};
using Model = std::map<Key, TestRow>;

void ExpectSame(const RowMap& rows, const Model& model, uint32_t cells) {
  ASSERT_EQ(rows.rows(), model.size());
  size_t embedx_rows = 0, visited = 0;
  rows.Scan(0, SIZE_MAX, [&](Key key, const float* value, bool has_embedx) {
    const auto found = model.find(key);
    ASSERT_TRUE(found != model.end()) << key;
    EXPECT_EQ(found->second.has_embedx, has_embedx) << key;
    EXPECT_EQ(found->second.value, std::vector<float>(value, value + cells)) << key;
    embedx_rows += has_embedx;
    ++visited;
  });
  EXPECT_EQ(visited, model.size());
  EXPECT_EQ(rows.embedx_rows(), embedx_rows);
}

TEST(RowMap, RemovedRowsAreAbsentAndCanBeWrittenAgain) {
  const ValueLayout layout = ValueLayout::Create(CtrSpec()).value();
  RowMap rows(&layout);
  std::vector<float> out(layout.full_floats());
  bool has_embedx = false;
  EXPECT_FALSE(rows.Remove(7));
  const std::vector<float> first = TestValue(layout, 7, 1, true);
  rows.Write(7, first.data(), true);
  EXPECT_TRUE(rows.Remove(7));
  EXPECT_FALSE(rows.Remove(7));
  EXPECT_FALSE(rows.Find(7, out.data(), &has_embedx));
  EXPECT_EQ(rows.rows(), 0u);
  EXPECT_EQ(rows.embedx_rows(), 0u);
  const std::vector<float> second = TestValue(layout, 7, 2, false);
  rows.Write(7, second.data(), false);
  ASSERT_TRUE(rows.Find(7, out.data(), &has_embedx));
  EXPECT_EQ(out, second);
  EXPECT_FALSE(has_embedx);
}

TEST(RowMap, ExpectedRowsAreFoundAndCostNoMoreMemory) {
  const ValueLayout layout = ValueLayout::Create(EmbeddingSpec(5)).value();
  for (const size_t count : {10u, 1000u, 70000u}) {
    RowMap expected(&layout), others(&layout);
    expected.Expect(count);
    for (Key key = 0; key < 2 * count; ++key) {  // twice as many as announced
      const std::vector<float> value = TestValue(layout, key, 1, true);
      expected.Write(key, value.data(), true);
      others.Write(key, value.data(), true);
      if (key + 1 == count) {
        EXPECT_LT(static_cast<double>(expected.memory_bytes()),
                  1.02 * static_cast<double>(others.memory_bytes()) + 4096)
            << count;
      }
    }
    EXPECT_EQ(expected.rows(), 2 * count);
    std::vector<float> out(layout.full_floats());
    bool has_embedx = false;
    for (Key key = 0; key < 2 * count; ++key) {
      ASSERT_TRUE(expected.Find(key, out.data(), &has_embedx));
      ASSERT_EQ(out, TestValue(layout, key, 1, true));
    }
    expected.Expect(5);  // makes no rows
    EXPECT_EQ(expected.rows(), 2 * count);
  }
}

TEST(RowMap, RowsExpectedInStepsCostNoMoreMemory) {
  const ValueLayout layout = ValueLayout::Create(EmbeddingSpec(60)).value();
  constexpr size_t kSteps = 9, kRows = 17000;  // a step fills 4 MB: two pages, and half a block
  RowMap expected(&layout), others(&layout);
  for (Key step = 0; step < kSteps; ++step) {
    expected.Expect(kRows);
    for (Key key = step * kRows; key < (step + 1) * kRows; ++key) {
      const std::vector<float> value = TestValue(layout, key, 1, true);
      expected.Write(key, value.data(), true);
      others.Write(key, value.data(), true);
    }
    EXPECT_LT(static_cast<double>(expected.memory_bytes()),
              1.02 * static_cast<double>(others.memory_bytes()) + 4096)
        << step;
  }
  EXPECT_EQ(expected.rows(), kSteps * kRows);
  std::vector<float> out(layout.full_floats());
  bool has_embedx = false;
  for (Key key = 0; key < kSteps * kRows; key += 97) {
    ASSERT_TRUE(expected.Find(key, out.data(), &has_embedx));
    ASSERT_EQ(out, TestValue(layout, key, 1, true));
  }
}

TEST(RowMap, AllAndLocateReturnStoredRows) {
  const ValueLayout layout = ValueLayout::Create(CtrSpec()).value();
  RowMap rows(&layout);
  for (Key key = 0; key < 1000; ++key) {
    rows.Write(key, TestValue(layout, key, 3, key % 2 == 0).data(), key % 2 == 0);
  }
  EXPECT_EQ(rows.All().size(), 1000u);
  std::vector<Key> keys;
  for (Key key = 1500; key-- > 0;) keys.push_back(key);
  const std::vector<RowMap::Stored> located = rows.Locate(keys);
  ASSERT_EQ(located.size(), keys.size());
  for (const std::vector<RowMap::Stored>& found : {rows.All(), located}) {
    for (const RowMap::Stored& row : found) {
      ASSERT_EQ(row.cells == nullptr, row.key >= 1000) << row.key;
      if (row.cells == nullptr) continue;
      EXPECT_EQ(row.has_embedx, row.key % 2 == 0);
      std::vector<float> value(row.cells, row.cells + layout.floats(row.has_embedx));
      value.resize(layout.full_floats());
      EXPECT_EQ(value, TestValue(layout, row.key, 3, row.has_embedx)) << row.key;
    }
  }
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(located[i].key, keys[i]);
}

TEST(RowMap, BehavesAsAMapUnderWritesRemovalsAndSweeps) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const v1::TableSpec& spec : {CtrSpec(), EmbeddingSpec(5)}) {
    const ValueLayout layout = ValueLayout::Create(spec).value();
    RowMap rows(&layout);
    Model model;
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 2000; ++i) {
        const Key key = random() % 5000 * 64;
        if (random() % 3 == 0) {
          ASSERT_EQ(rows.Remove(key), model.erase(key) == 1);
          continue;
        }
        const bool has_embedx = !layout.embedx_is_optional() || random() % 2 == 0;
        TestRow row{TestValue(layout, key, round, has_embedx), has_embedx};
        rows.Write(key, row.value.data(), has_embedx);
        model[key] = std::move(row);
      }
      const uint64_t divisor = 2 + random() % 5;
      size_t visited = 0;
      rows.Sweep([&](Key key, float* value, bool has_embedx) {
        ++visited;
        EXPECT_EQ(model.at(key).has_embedx, has_embedx);
        if (key / 64 % divisor == 0) return RowFate::kRemove;
        value[0] += 1;
        return RowFate::kKeep;
      });
      ASSERT_EQ(visited, model.size());
      std::erase_if(model, [&](const auto& row) { return row.first / 64 % divisor == 0; });
      for (auto& [key, row] : model) row.value[0] += 1;
      ExpectSame(rows, model, layout.full_floats());
    }
  }
}

// Rows for keys, some of which already exist; values of `round`.
Rows SomeRows(const ValueLayout& layout, int round, std::mt19937_64* random) {
  std::map<Key, bool> keys;
  for (int i = 0; i < 3000; ++i) keys[(*random)() % 9000 * 64] = (*random)() % 2 == 0;
  Rows rows;
  for (const auto& [key, some] : keys) {
    const bool has_embedx = some || !layout.embedx_is_optional();
    rows.Add(key, TestValue(layout, key, round, has_embedx), has_embedx);
  }
  return rows;
}

TEST(RowMap, PlacedRowsAreInvisibleUntilWritten) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const v1::TableSpec& spec : {CtrSpec(), EmbeddingSpec(5)}) {
    const ValueLayout layout = ValueLayout::Create(spec).value();
    RowMap rows(&layout), plain(&layout);
    Model model;
    const auto write = [&](RowMap& map, const Rows& some) {
      map.Write(some.keys, some.values.data(), some.has_embedx.data());
    };
    for (int round = 0; round < 40; ++round) {
      const Rows placed = SomeRows(layout, 2 * round, &random);
      const size_t half = placed.keys.size() / 2;
      rows.Expect(placed.keys.size());
      rows.Place(absl::MakeConstSpan(placed.keys).first(half), placed.values.data(),
                 placed.has_embedx.data());
      rows.Place(absl::MakeConstSpan(placed.keys).subspan(half),
                 placed.values.data() + half * layout.full_floats(),
                 placed.has_embedx.data() + half);
      ExpectSame(rows, model, layout.full_floats());
      // Writes the placed rows, or the same rows after a drop, or other rows, which must not get
      // the placed values.
      const bool other = round % 3 == 2;
      if (round % 3 == 1) rows.DropPlaced();
      const Rows written = other ? SomeRows(layout, 2 * round + 1, &random) : placed;
      if (other) rows.DropPlaced();
      write(rows, written);
      rows.DropPlaced();
      write(plain, written);
      for (size_t i = 0; i < written.keys.size(); ++i) {
        const auto value = written.values.begin() + i * layout.full_floats();
        model[written.keys[i]] = {{value, value + layout.full_floats()},
                                  written.has_embedx[i] != 0};
      }
      ExpectSame(rows, model, layout.full_floats());
    }
    // The dropped records hold other rows now.
    EXPECT_LE(rows.memory_bytes(), plain.memory_bytes() * 3 / 2);
  }
}

TEST(RowMap, PackedHasTheSameRowsAndScoresInLessMemory) {
  const ValueLayout layout = ValueLayout::CreateStored(EmbeddingSpec(16)).value();
  RowMap map(&layout, /*scored=*/true);
  std::vector<float> value(layout.full_floats());
  for (Key key = 0; key < 40000; ++key) {
    value.assign(value.size(), static_cast<float>(key) / 3);
    map.Add(key * 7, value.data(), true, static_cast<float>(key % 100));
  }
  const size_t full = map.memory_bytes();
  for (Key key = 0; key < 40000; ++key) {
    if (key % 4 != 1) {
      ASSERT_TRUE(map.Remove(key * 7));
    }
  }
  EXPECT_EQ(map.memory_bytes(), full);
  EXPECT_GT(map.unused_bytes(), full / 2);
  const std::unique_ptr<RowMap> packed = map.Packed();
  EXPECT_LT(packed->memory_bytes(), full * 2 / 5);
  EXPECT_LT(packed->unused_bytes() * 16, packed->memory_bytes());
  EXPECT_EQ(packed->rows(), 10000u);
  EXPECT_EQ(packed->value_bytes(), map.value_bytes());
  ScoreHistogram mine(100), theirs(100);
  map.CountScores(&mine);
  packed->CountScores(&theirs);
  const ScoreCut cut(mine, 300000), same(theirs, 300000);
  for (Key key = 0; key < 40000; ++key) {
    bool has_embedx = false;
    ASSERT_EQ(packed->Find(key * 7, value.data(), &has_embedx), key % 4 == 1) << key;
    if (key % 4 == 1) {
      ASSERT_EQ(value, std::vector<float>(16, static_cast<float>(key) / 3));
    }
  }
  EXPECT_EQ(packed->Evict(same), map.Evict(cut));
  std::vector<Key> left = packed->Keys(), expected = map.Keys();
  std::sort(left.begin(), left.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace cistern::server
