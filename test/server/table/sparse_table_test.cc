#include "server/table/sparse_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <unordered_map>

#include "common/wire/frame.h"
#include "test/server/table/table_specs.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;

struct Pulled {
  std::vector<float> values;
  std::vector<uint8_t> has_embedx;
};

Pulled PullAll(const SparseTable& table, const std::vector<Key>& keys, bool absent_is_zero) {
  Pulled pulled;
  pulled.values.assign(keys.size() * table.layout().full_floats(), -99.0f);
  pulled.has_embedx.assign(keys.size(), 77);
  EXPECT_TRUE(
      table.Pull(keys, absent_is_zero, pulled.values.data(), pulled.has_embedx.data()).ok());
  return pulled;
}

std::vector<float> ValueOf(const Pulled& pulled, const SparseTable& table, size_t i) {
  const size_t stride = table.layout().full_floats();
  return {pulled.values.begin() + i * stride, pulled.values.begin() + (i + 1) * stride};
}

Rows TestRows(const SparseTable& table, Key begin, Key end, int version, bool has_embedx = true) {
  Rows rows;
  for (Key key = begin; key < end; ++key) {
    rows.Add(key, TestValue(table.layout(), key, version, has_embedx), has_embedx);
  }
  return rows;
}

TEST(SparseTable, PullReadsWrittenValues) {
  ThreadPool pool(2);
  for (uint32_t shard_num : {1, 7, 64}) {
    auto table = Table(EmbeddingSpec(), Map(shard_num, 1));
    const Rows rows = TestRows(*table, 0, 20000, 1);
    table->Write({rows.block()}, pool);
    const Pulled pulled = PullAll(*table, rows.keys, false);
    EXPECT_EQ(pulled.values, rows.values);
    EXPECT_EQ(pulled.has_embedx, std::vector<uint8_t>(rows.keys.size(), 1));
    EXPECT_EQ(table->counts().rows, 20000u);
  }
}

TEST(SparseTable, RowsKeepTheirValuesWhenTheirPagesMove) {
  ThreadPool pool(2);
  auto table = Table(EmbeddingSpec(60), Map(2, 1));
  Rows all;
  for (Key step = 0; step < 5; ++step) {
    constexpr Key kRows = 17000;  // 2 MB in each shard
    table->Write({TestRows(*table, step * kRows, (step + 1) * kRows, 1).block()}, pool);
    all = TestRows(*table, 0, (step + 1) * kRows, 1);
    for (int read = 0; read < 5; ++read) {  // often enough: the next Write moves pages
      EXPECT_TRUE(PullAll(*table, all.keys, false).values == all.values) << step;
    }
  }
  EXPECT_EQ(table->counts().rows, all.keys.size());
}

TEST(SparseTable, ZeroAndHugeKeysAreOrdinaryKeys) {
  ThreadPool pool(1);
  auto table = Table(EmbeddingSpec(), Map(4, 1));
  Rows rows;
  const std::vector<Key> keys = {0,      1, kReservedKey32, kReservedKey64 - 1, kReservedKey64 + 1,
                                 ~Key{0}};
  for (Key key : keys) rows.Add(key, TestValue(table->layout(), key, 3, true), true);
  ASSERT_TRUE(table->CheckKeys(keys).ok());
  table->Write({rows.block()}, pool);
  EXPECT_EQ(PullAll(*table, keys, true).values, rows.values);
}

TEST(SparseTable, AbsentKeyReadsItsInitialValueAndIsNotInserted) {
  for (const v1::TableSpec& spec : {EmbeddingSpec(), CtrSpec()}) {
    auto table = Table(spec, Map(8, 1));
    const std::vector<Key> keys = {5, 13, 8000000000ull};
    const Pulled pulled = PullAll(*table, keys, false);
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<float> initial(table->layout().full_floats());
      const bool has_embedx = table->layout().Initialize(keys[i], initial.data());
      EXPECT_EQ(ValueOf(pulled, *table, i), initial);
      EXPECT_EQ(pulled.has_embedx[i], has_embedx);
    }
    EXPECT_EQ(table->counts().rows, 0u);
    const Pulled zeros = PullAll(*table, keys, true);
    EXPECT_EQ(zeros.values, std::vector<float>(zeros.values.size(), 0.0f));
    EXPECT_EQ(zeros.has_embedx, std::vector<uint8_t>(keys.size(), kAbsent));
  }
}

TEST(SparseTable, LaterBlocksOverwriteEarlierOnes) {
  ThreadPool pool(2);
  auto table = Table(EmbeddingSpec(), Map(8, 1));
  const Rows first = TestRows(*table, 0, 3000, 1), second = TestRows(*table, 1000, 2000, 2);
  table->Write({first.block(), second.block()}, pool);
  EXPECT_EQ(PullAll(*table, second.keys, true).values, second.values);
  EXPECT_EQ(table->counts().rows, 3000u);
}

TEST(SparseTable, GrowingAnEmbedxKeepsTheRowAndFreesTheOldRecord) {
  ThreadPool pool(1);
  auto table = Table(CtrSpec(), Map(2, 1));
  const Rows small = TestRows(*table, 0, 1000, 1, false);
  table->Write({small.block()}, pool);
  EXPECT_EQ(table->counts().embedx_rows, 0u);
  EXPECT_EQ(table->counts().value_bytes, 1000u * 11 * 4);
  Pulled pulled = PullAll(*table, small.keys, false);
  EXPECT_EQ(pulled.values, small.values);  // the cells after the head are zero
  EXPECT_EQ(pulled.has_embedx, std::vector<uint8_t>(1000, 0));

  const Rows grown = TestRows(*table, 0, 500, 1, true);  // the same head
  table->Write({grown.block()}, pool);
  EXPECT_EQ(table->counts().rows, 1000u);
  EXPECT_EQ(table->counts().embedx_rows, 500u);
  EXPECT_EQ(table->counts().value_bytes, 500u * 11 * 4 + 500u * 20 * 4);
  pulled = PullAll(*table, grown.keys, false);
  EXPECT_EQ(pulled.values, grown.values);
  EXPECT_EQ(pulled.has_embedx, std::vector<uint8_t>(500, 1));

  // Rows that grow and shrink reuse the records that other rows left.
  const uint64_t before = table->counts().memory_bytes;
  for (int version = 2; version < 100; ++version) {
    const Rows rows = TestRows(*table, 0, 500, version, version % 2 == 1);
    table->Write({rows.block()}, pool);
    EXPECT_EQ(PullAll(*table, rows.keys, false).values, rows.values);
  }
  EXPECT_EQ(table->counts().memory_bytes, before);
}

TEST(SparseTable, AValueWithoutEmbedxMayReplaceOneWithEmbedx) {
  ThreadPool pool(1);
  auto table = Table(CtrSpec(), Map(1, 1));
  const Rows with_embedx = TestRows(*table, 0, 10, 1, true),
             without = TestRows(*table, 3, 4, 2, false);
  table->Write({with_embedx.block(), without.block()}, pool);
  const Pulled pulled = PullAll(*table, with_embedx.keys, false);
  EXPECT_EQ(ValueOf(pulled, *table, 3), TestValue(table->layout(), 3, 2, false));
  EXPECT_EQ(pulled.has_embedx[3], 0);
  EXPECT_EQ(ValueOf(pulled, *table, 4), TestValue(table->layout(), 4, 1, true));
  EXPECT_EQ(table->counts().embedx_rows, 9u);
}

TEST(SparseTable, FindReadsOneValue) {
  auto table = Table(CtrSpec(), Map(4, 2), 1);
  const std::vector<float> value = TestValue(table->layout(), 5, 1, false);
  table->Insert(0, 5, value.data(), false);  // shard 5 % 4 = 1: the first of server 1
  std::vector<float> out(table->layout().full_floats());
  bool has_embedx = true;
  ASSERT_TRUE(*table->Find(5, out.data(), &has_embedx));
  EXPECT_EQ(out, value);
  EXPECT_FALSE(has_embedx);
  EXPECT_FALSE(*table->Find(9, out.data(), &has_embedx));
  EXPECT_FALSE(*table->Find(4, out.data(), &has_embedx));  // owned by the other server
}

TEST(SparseTable, ScanVisitsEveryRowOnceInPages) {
  ThreadPool pool(1);
  auto table = Table(CtrSpec(), Map(3, 1));
  Rows rows = TestRows(*table, 0, 1000, 1, true);
  const Rows small = TestRows(*table, 1000, 1500, 1, false);
  table->Write({rows.block(), small.block()}, pool);
  std::map<Key, std::vector<float>> seen;
  for (uint32_t local = 0; local < table->local_shard_num(); ++local) {
    uint64_t cursor = 0;
    do {
      size_t page = 0;
      cursor = *table->Scan(local, cursor, 64, [&](Key key, const float* value, bool has_embedx) {
        ++page;
        EXPECT_EQ(key % 3, local);
        EXPECT_EQ(has_embedx, key < 1000);
        const std::vector<float> cells(value, value + table->layout().full_floats());
        EXPECT_TRUE(seen.emplace(key, cells).second) << key << " occurred twice";
      });
      EXPECT_LE(page, 64u);
    } while (cursor != 0);
  }
  ASSERT_EQ(seen.size(), 1500u);
  for (const auto& [key, cells] : seen) {
    EXPECT_EQ(cells, TestValue(table->layout(), key, 1, key < 1000));
  }
}

TEST(SparseTable, ClearRemovesEverything) {
  ThreadPool pool(1);
  auto table = Table(EmbeddingSpec(), Map(2, 1));
  const Rows rows = TestRows(*table, 0, 5000, 1);
  const uint64_t empty_digest = *table->Digest();
  table->Write({rows.block()}, pool);
  EXPECT_NE(*table->Digest(), empty_digest);
  table->Clear();
  EXPECT_EQ(table->counts().rows, 0u);
  EXPECT_EQ(*table->Digest(), empty_digest);
  EXPECT_EQ(PullAll(*table, {7}, true).has_embedx[0], kAbsent);
  table->Write({rows.block()}, pool);
  EXPECT_EQ(PullAll(*table, rows.keys, true).values, rows.values);
}

TEST(SparseTable, RefusesForeignAndReservedKeys) {
  auto table = Table(EmbeddingSpec(), Map(10, 3), 2);  // shards 2, 5, 8
  EXPECT_TRUE(table->CheckKeys({2, 5, 8, 12, 1000000000000008ull}).ok());
  const absl::Status foreign = table->CheckKeys({2, 13});
  EXPECT_EQ(foreign.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(foreign.message()),
              testing::AllOf(HasSubstr("key 13"), HasSubstr("shard 3"), HasSubstr("server 0")));
  auto all = Table(EmbeddingSpec(), Map(10, 1));
  const absl::Status reserved = all->CheckKeys({1, kReservedKey64});
  EXPECT_EQ(reserved.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(reserved.message()), HasSubstr("reserved"));
}

TEST(SparseTable, DigestIsTheSumOfRowHashes) {
  ThreadPool pool(1);
  auto table = Table(CtrSpec(), Map(4, 1));
  uint64_t expected = 0;
  Rows rows;
  for (Key key : {3, 100, 7}) {
    const bool has_embedx = key == 100;
    const std::vector<float> value = TestValue(table->layout(), key, 1, has_embedx);
    rows.Add(key, value, has_embedx);
    std::string bytes(16, '\0');
    bytes[0] = static_cast<char>(key);
    bytes[8] = has_embedx ? 1 : 0;
    bytes.append(reinterpret_cast<const char*>(value.data()), value.size() * 4);
    expected += XXH3_64bits(bytes.data(), bytes.size());
  }
  table->Write({rows.block()}, pool);
  EXPECT_EQ(*table->Digest(), expected);
}

TEST(SparseTable, DigestDependsOnNeitherOrderNorServerNumber) {
  ThreadPool pool(2);
  const v1::TableSpec spec = CtrSpec();
  const ShardMap one = Map(16, 1), three = Map(16, 3);
  auto whole = Table(spec, one);
  std::vector<Key> keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  Rows rows;
  for (Key key : keys) {
    rows.Add(key, TestValue(whole->layout(), key, 1, key % 2 == 0), key % 2 == 0);
  }
  whole->Write({rows.block()}, pool);

  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(1));
  std::vector<std::unique_ptr<SparseTable>> parts;
  std::vector<Rows> part_rows(3);
  for (uint32_t rank = 0; rank < 3; ++rank) parts.push_back(Table(spec, three, rank));
  for (Key key : keys) {
    part_rows[three.server(three.shard(key))].Add(
        key, TestValue(whole->layout(), key, 1, key % 2 == 0), key % 2 == 0);
  }
  uint64_t sum = 0;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(parts[rank]->CheckKeys(part_rows[rank].keys).ok());
    parts[rank]->Write({part_rows[rank].block()}, pool);
    sum += *parts[rank]->Digest();
  }
  EXPECT_EQ(sum, *whole->Digest());
  EXPECT_NE(sum, 0u);

  // One bit of one cell changes the digest.
  rows.values[17] = std::nextafter(rows.values[17], 1e9f);
  whole->Write({rows.block()}, pool);
  EXPECT_NE(sum, *whole->Digest());
}

// A pull sees a whole old or new version of a row, never a mixture.
TEST(SparseTable, PullsRunDuringWrites) {
  ThreadPool pool(2);
  auto table = Table(EmbeddingSpec(16), Map(4, 1));
  const auto version_rows = [&](int version) {
    Rows rows;
    for (Key key = 0; key < 500; ++key) {
      rows.Add(key, std::vector<float>(16, static_cast<float>(version)), true);
    }
    return rows;
  };
  const Rows first = version_rows(1);
  table->Write({first.block()}, pool);
  std::atomic<bool> stop{false}, torn{false};
  std::atomic<int> pulls{0};
  std::thread reader([&] {
    while (!stop) {
      const Pulled pulled = PullAll(*table, first.keys, true);
      for (size_t i = 0; i < pulled.values.size(); ++i) {
        if (pulled.values[i] != pulled.values[i - i % 16]) torn = true;
      }
      ++pulls;
    }
  });
  for (int version = 2; version < 60 || pulls < 20; ++version) {
    const Rows rows = version_rows(version);
    Rows fresh = TestRows(*table, 1000 * version, 1000 * version + 500, version);  // some grow
    table->Write({rows.block(), fresh.block()}, pool);
  }
  stop = true;
  reader.join();
  EXPECT_FALSE(torn);
}

TEST(SparseTable, BehavesAsAnUnorderedMap) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  ThreadPool pool(2);
  for (const v1::TableSpec& spec : {CtrSpec(8), CtrSpec(0), EmbeddingSpec(5)}) {
    auto table = Table(spec, Map(5, 1));
    std::unordered_map<Key, std::pair<std::vector<float>, bool>> model;
    const auto random_key = [&] { return random() % 3 == 0 ? random() >> 1 : random() % 4000; };
    for (int round = 0; round < 60; ++round) {
      std::vector<Rows> blocks(random() % 4);
      for (Rows& rows : blocks) {
        for (size_t n = random() % 400; n > 0; --n) {
          const Key key = random_key();
          const bool has_embedx = spec.accessor() != v1::TableSpec::CTR || random() % 2 == 0;
          std::vector<float> value = TestValue(table->layout(), key, round, has_embedx);
          rows.Add(key, value, has_embedx);
          model[key] = {value, has_embedx};  // within a write, the last value of a key wins
        }
      }
      std::vector<ValueBlock> spans;
      for (const Rows& rows : blocks) spans.push_back(rows.block());
      table->Write(spans, pool);

      std::vector<Key> keys;
      for (int i = 0; i < 500; ++i) keys.push_back(random_key());
      if (round % 2 == 0) {
        std::sort(keys.begin(), keys.end(), [](Key a, Key b) { return a % 5 < b % 5; });
      }
      const Pulled pulled = PullAll(*table, keys, true);
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto row = model.find(keys[i]);
        if (row == model.end()) {
          ASSERT_EQ(pulled.has_embedx[i], kAbsent) << keys[i];
        } else {
          ASSERT_EQ(pulled.has_embedx[i], row->second.second) << keys[i];
          ASSERT_EQ(ValueOf(pulled, *table, i), row->second.first) << keys[i];
        }
      }
      ASSERT_EQ(table->counts().rows, model.size());
      if (random() % 20 == 0) {
        table->Clear();
        model.clear();
      }
    }
  }
}

TEST(SparseTable, GivesTheMemoryOfEvictedRowsBack) {
  const auto table = SparseTable::Create(EmbeddingSpec(16), Map(2, 1), 0, /*tiered=*/true).value();
  Rows rows;
  for (Key key = 1; key <= 60000; ++key) {
    rows.Add(key, std::vector<float>(16, static_cast<float>(key)), true);
  }
  const ValueBlock block = {rows.keys, rows.values.data(), rows.has_embedx.data()};
  ThreadPool pool(1);
  SparseTable::Durable commit;
  commit.cold.resize(2);
  commit.rows = {30000, 30000};
  table->WriteDurable(absl::MakeConstSpan(&block, 1), commit, pool);
  const SparseTable::Counts full = table->counts();
  EXPECT_EQ(full.hot_rows, 60000u);
  // A pass without rows, whose commit keeps a quarter of the bytes.
  ScoreHistogram scores(0);
  table->AddScores({}, pool, 0, &scores);
  commit.cold.resize(2);
  commit.cut = ScoreCut(scores, scores.total() / 4);
  table->WriteDurable({}, commit, pool);
  const SparseTable::Counts few = table->counts();
  EXPECT_NEAR(static_cast<double>(few.hot_rows), 15000, 500);
  EXPECT_LT(few.memory_bytes, full.memory_bytes * 2 / 5);
  size_t found = 0;
  for (Key key = 1; key <= 60000; ++key) {
    std::vector<float> value(16);
    bool has_embedx = false;
    if (!table->Find(key, value.data(), &has_embedx).value()) continue;
    ++found;
    ASSERT_EQ(value, std::vector<float>(16, static_cast<float>(key)));
  }
  EXPECT_EQ(found, few.hot_rows);
}

}  // namespace
}  // namespace cistern::server
