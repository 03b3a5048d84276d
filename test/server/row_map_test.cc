#include "server/table/row_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "test/server/table_specs.h"

namespace cistern {
namespace {

struct TestRow {
  std::vector<float> value;
  bool full = false;
};
using Model = std::map<Key, TestRow>;

void ExpectSame(const RowMap& rows, const Model& model, uint32_t cells) {
  ASSERT_EQ(rows.rows(), model.size());
  size_t full_rows = 0, visited = 0;
  rows.Scan(0, SIZE_MAX, [&](Key key, const float* value, bool full) {
    const auto found = model.find(key);
    ASSERT_TRUE(found != model.end()) << key;
    EXPECT_EQ(found->second.full, full) << key;
    EXPECT_EQ(found->second.value, std::vector<float>(value, value + cells)) << key;
    full_rows += full;
    ++visited;
  });
  EXPECT_EQ(visited, model.size());
  EXPECT_EQ(rows.full_rows(), full_rows);
}

TEST(RowMap, RemovedRowsAreAbsentAndMayComeBack) {
  const ValueLayout layout = ValueLayout::Create(CtrSpec()).value();
  RowMap rows(&layout);
  std::vector<float> out(layout.full_floats());
  bool full = false;
  EXPECT_FALSE(rows.Remove(7));
  const std::vector<float> first = TestValue(layout, 7, 1, true);
  rows.Write(7, first.data(), true);
  EXPECT_TRUE(rows.Remove(7));
  EXPECT_FALSE(rows.Remove(7));
  EXPECT_FALSE(rows.Find(7, out.data(), &full));
  EXPECT_EQ(rows.rows(), 0u);
  EXPECT_EQ(rows.full_rows(), 0u);
  const std::vector<float> second = TestValue(layout, 7, 2, false);
  rows.Write(7, second.data(), false);
  ASSERT_TRUE(rows.Find(7, out.data(), &full));
  EXPECT_EQ(out, second);
  EXPECT_FALSE(full);
}

TEST(RowMap, WritesRemovalsAndSweepsBehaveAsAMap) {
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
        const bool full = !layout.is_ctr() || random() % 2 == 0;
        TestRow row{TestValue(layout, key, round, full), full};
        rows.Write(key, row.value.data(), full);
        model[key] = std::move(row);
      }
      const uint64_t divisor = 2 + random() % 5;
      size_t visited = 0;
      rows.Sweep([&](Key key, float* value, bool full) {
        ++visited;
        EXPECT_EQ(model.at(key).full, full);
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

}  // namespace
}  // namespace cistern
