// Fleets of servers with two sparse and two dense tables, for tests of saved models.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "common/base/hash.h"
#include "common/value/accessor/ctr_accessor.h"
#include "server/saved_model/model_snapshot.h"
#include "test/server/table/table_specs.h"
#include "test/support/temp_folder.h"

namespace cistern::server {

inline constexpr uint32_t kShardNum = 7;
inline constexpr Key kKeys = 5000;

inline v1::DenseTableSpec DenseSpec(const char* name, uint64_t rows, int columns) {
  v1::DenseTableSpec spec;
  spec.set_name(name);
  spec.set_rows(rows);
  for (int i = 0; i < columns; ++i) spec.add_columns(absl::StrCat("c", i));
  return spec;
}

inline v1::Schema TestSchema() {
  v1::Schema schema;
  *schema.add_tables() = CtrSpec(3);
  *schema.add_tables() = EmbeddingSpec(2);
  *schema.add_dense_tables() = DenseSpec("dense", 101, 3);
  *schema.add_dense_tables() = DenseSpec("never", 10, 1);  // never written
  return schema;
}

// Servers 0 .. n-1 of one fleet.
using Fleet = std::vector<std::unique_ptr<TableStore>>;

inline Fleet EmptyFleet(uint32_t server_num, uint32_t shard_num = kShardNum) {
  Fleet fleet;
  for (uint32_t rank = 0; rank < server_num; ++rank) {
    fleet.push_back(std::make_unique<TableStore>(Map(shard_num, server_num), rank));
  }
  return fleet;
}

inline Key TestKey(Key i) {
  return MixKey(i);
}

// The value of key `i` of table `id`: floats that only the shortest exact decimals reproduce.
inline std::vector<float> ValueOf(const ValueLayout& layout, Key i, bool has_embedx) {
  std::vector<float> value(layout.full_floats());
  layout.Initialize(TestKey(i), value.data());
  for (uint32_t cell = 0; cell < layout.floats(has_embedx); ++cell) {
    value[cell] = std::sin(static_cast<float>(i * 31 + cell)) * 1e-3f;
  }
  if (layout.accessor().has_statistics()) {
    StoreDouble(&value[CtrCells::kShow], static_cast<double>(i) / 3);
    StoreDouble(&value[CtrCells::kClick], static_cast<double>(i) / 7);
    StoreU64(&value[SlotIndex(layout) + 1], ~uint64_t{i});
  }
  return value;
}

inline bool HasEmbedx(const ValueLayout& layout, Key i) {
  return !layout.embedx_is_optional() || i % 3 == 0;
}

inline float DenseCell(uint64_t row, uint64_t column) {
  return static_cast<float>(row) + static_cast<float>(column) / 8;
}

inline void FillDense(DenseTable& table) {
  const uint64_t count = table.range().end - table.range().begin, columns = table.columns();
  std::vector<float> values(count * columns);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = DenseCell(table.range().begin + i / columns, i % columns);
  }
  ASSERT_TRUE(table.Write(table.range().begin, count, values.data()).ok());
}

inline Fleet FullFleet(uint32_t server_num) {
  Fleet fleet = EmptyFleet(server_num);
  for (const auto& store : fleet) {
    EXPECT_TRUE(store->Create(TestSchema()).ok());
    for (const auto& table : store->sparse_tables()) {
      for (Key i = 0; i < kKeys; ++i) {
        const ShardIndex shard = store->shard_map().shard(TestKey(i));
        if (store->shard_map().server(shard) != store->rank()) continue;
        const bool has_embedx = HasEmbedx(table->layout(), i);
        table->Insert(store->shard_map().local_index(shard), TestKey(i),
                      ValueOf(table->layout(), i, has_embedx).data(), has_embedx);
      }
    }
    FillDense(*store->dense_tables()[0]);
  }
  return fleet;
}

inline SaveTotals SaveAll(const Fleet& fleet, PassId pass, const std::string& folder,
                          const SaveOptions& options = {}) {
  ThreadPool pool(2);
  SaveTotals sum;
  for (const auto& store : fleet) {
    const absl::StatusOr<SaveTotals> totals =
        SaveStore(Disk(), *store, pass, folder, pool, options);
    EXPECT_TRUE(totals.ok()) << totals.status();
    if (!totals.ok()) continue;
    sum.rows += totals->rows;
    sum.bytes += totals->bytes;
    sum.files += totals->files;
  }
  return sum;
}

// The digests of a fleet's tables; they do not depend on placement.
inline std::vector<uint64_t> Digests(const Fleet& fleet) {
  std::vector<uint64_t> sums(4);
  for (const auto& store : fleet) {
    for (size_t i = 0; i < 2; ++i) sums[i] += *store->sparse_tables()[i]->Digest();
    for (size_t i = 0; i < 2; ++i) sums[2 + i] += store->dense_tables()[i]->Digest();
  }
  return sums;
}

}  // namespace cistern::server
