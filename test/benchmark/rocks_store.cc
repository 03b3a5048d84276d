#include "test/benchmark/rocks_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/base/internal/endian.h"
#include "common/base/check.h"

namespace cistern {
namespace {

void Check(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "benchmark: RocksDB: %s\n", status.ToString().c_str());
  std::exit(1);
}

// Keys in their order as bytes.
struct KeyBytes {
  explicit KeyBytes(Key key) { absl::big_endian::Store64(bytes, key); }
  rocksdb::Slice slice() const { return {bytes, sizeof(bytes)}; }
  char bytes[sizeof(Key)];
};

class BuiltRocksStore : public RocksStore {
 public:
  BuiltRocksStore(const std::string& folder, size_t floats, uint64_t cache_bytes, int threads)
      : row_bytes_(floats * sizeof(float)), threads_(static_cast<size_t>(threads)) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(cache_bytes);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(12));
    table.block_size = 4096;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.compression = rocksdb::kNoCompression;
    options.use_direct_reads = options.use_direct_io_for_flush_and_compaction = true;
    options.max_background_jobs = 2;
    options.max_open_files = -1;
    options.statistics = statistics_ = rocksdb::CreateDBStatistics();
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, folder, &db));
    db_.reset(db);
  }

  void Pull(absl::Span<const Key> keys, float* values) override {
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
    std::vector<std::thread> threads;
    for (size_t i = 0; i < threads_; ++i) {
      const size_t begin = keys.size() * i / threads_, end = keys.size() * (i + 1) / threads_;
      threads.emplace_back([this, keys, part = absl::MakeSpan(order).subspan(begin, end - begin),
                            out = reinterpret_cast<char*>(values)] { PullPart(keys, part, out); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Push(absl::Span<const Key> keys, const float* values) override {
    constexpr size_t kBatch = 4096;
    const char* const rows = reinterpret_cast<const char*>(values);
    for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
      rocksdb::WriteBatch batch;
      for (size_t i = begin; i < std::min(keys.size(), begin + kBatch); ++i) {
        Check(batch.Put(KeyBytes(keys[i]).slice(), {rows + i * row_bytes_, row_bytes_}));
      }
      Check(db_->Write(rocksdb::WriteOptions(), &batch));
    }
  }

  void Commit() override { Check(db_->SyncWAL()); }
  void Compact() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    Check(db_->CompactRange(options, nullptr, nullptr));
  }
  uint64_t bytes_written() const override {
    return statistics_->getTickerCount(rocksdb::WAL_FILE_BYTES) +
           statistics_->getTickerCount(rocksdb::FLUSH_WRITE_BYTES) +
           statistics_->getTickerCount(rocksdb::COMPACT_WRITE_BYTES);
  }
  uint64_t index_bytes() const override {
    uint64_t bytes = 0;
    CISTERN_CHECK(db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &bytes));
    return bytes;
  }

 private:
  // Reads the rows of keys[part[...]], in that order.
  void PullPart(absl::Span<const Key> keys, absl::Span<const size_t> part, char* out) const {
    constexpr size_t kBatch = 1024;
    std::vector<KeyBytes> bytes;
    std::vector<rocksdb::Slice> slices;
    for (size_t begin = 0; begin < part.size(); begin += kBatch) {
      const absl::Span<const size_t> batch = part.subspan(begin, kBatch);
      bytes.clear();
      for (const size_t i : batch) bytes.emplace_back(keys[i]);
      slices.clear();
      for (const KeyBytes& key : bytes) slices.push_back(key.slice());
      std::vector<rocksdb::PinnableSlice> rows(batch.size());
      std::vector<rocksdb::Status> found(batch.size());
      db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), batch.size(), slices.data(),
                    rows.data(), found.data(), /*sorted_input=*/true);
      for (size_t i = 0; i < batch.size(); ++i) {
        char* const row = out + batch[i] * row_bytes_;
        if (found[i].IsNotFound()) {
          std::memset(row, 0, row_bytes_);
          continue;
        }
        Check(found[i]);
        CISTERN_CHECK(rows[i].size() == row_bytes_);
        std::memcpy(row, rows[i].data(), row_bytes_);
      }
    }
  }

  const size_t row_bytes_, threads_;
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<RocksStore> RocksStore::Open(const std::string& folder, size_t floats,
                                             uint64_t cache_bytes, int threads) {
  return std::make_unique<BuiltRocksStore>(folder, floats, cache_bytes, threads);
}

}  // namespace cistern
