// The part of gpu_benchmark that measures the ops that stage a pass, at DLRM's size.
//
// A pass with 26 million keys; batches of 65,536 samples with one key per table, 26 tables, power
// law 1.05. Bytes per op are those in the header comments of the .cu files.
#pragma once

#include <cmath>
#include <numeric>

#include "cuda/op/key/compact_rows.h"
#include "cuda/op/key/distinct_keys.h"
#include "cuda/op/key/key_index.h"
#include "cuda/op/key/segments.h"
#include "test/cuda/gpu_figures.h"

namespace cistern::op {

class StagingFigures {
 public:
  explicit StagingFigures(Figures& figures)
      : figures_(figures),
        stream_(figures.stream()),
        table_keys_(figures.Small(1000000)),
        keys_(kTables * table_keys_),
        batch_size_(kTables * figures.Small(65536)) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> draw(0, 1);
    const double power = 1 - 1.05, most = std::pow(static_cast<double>(table_keys_), power);
    std::vector<Key> keys(batch_size_);
    for (size_t i = 0; i < batch_size_; ++i) {
      const auto rank = static_cast<size_t>(std::pow(1 + draw(random) * (most - 1), 1 / power));
      // 1000003 is prime: each rank maps to its own key.
      keys[i] = i % kTables * table_keys_ + std::min(rank, table_keys_ - 1) * 1000003 % table_keys_;
    }
    batch_ = figures.Upload(keys);
    std::vector<uint32_t> offsets(batch_size_ + 1);
    std::iota(offsets.begin(), offsets.end(), 0u);
    offsets_ = figures.Upload(offsets);
    std::vector<Key> all(keys_);
    std::iota(all.begin(), all.end(), Key{0});
    const Memory all_keys = figures.Upload(all);
    scratch_ = Take<uint8_t>(AddDistinctKeysScratchBytes(keys_, batch_size_, stream_));
    held_ = Take<uint64_t>(keys_);
    merged_ = Take<uint64_t>(keys_ + batch_size_);
    count_ = Take<uint64_t>(1);
    index_ = Take<uint32_t>(KeyIndexEntries(keys_));
    rows_ = Take<Row>(batch_size_);
    if (!stream_.status().ok()) return;
    AddDistinctKeys(all_keys.view<Key>().data, keys_, nullptr, 0, At<uint64_t>(held_),
                    At<uint64_t>(count_), nullptr, scratch_.data(), stream_);
    (void)stream_.Wait();  // before all_keys is freed
  }

  void AddKeys() {
    for (const size_t held : {size_t{0}, keys_}) {
      Measure(absl::StrFormat("AddDistinctKeys, %d to %d held", batch_size_, held),
              160.0 * static_cast<double>(batch_size_) + 32.0 * static_cast<double>(held),
              batch_size_, [this, held](size_t) {
                AddDistinctKeys(At<Key>(batch_), batch_size_, At<uint64_t>(held_), held,
                                At<uint64_t>(merged_), At<uint64_t>(count_), nullptr,
                                scratch_.data(), stream_);
              });
    }
  }

  void Index() {
    Measure(absl::StrFormat("BuildKeyIndex of %d", keys_),
            8.0 * static_cast<double>(keys_) + 4.0 * static_cast<double>(KeyIndexEntries(keys_)),
            keys_, [this](size_t) {
              BuildKeyIndex(At<uint64_t>(held_), keys_, At<uint32_t>(index_), stream_);
            });
    Measure(absl::StrFormat("FindKeys, %d of %d", batch_size_, keys_),
            76.0 * static_cast<double>(batch_size_), static_cast<double>(batch_size_),
            [this](size_t) {
              FindKeys(At<Key>(batch_), batch_size_, At<uint64_t>(held_), keys_,
                       At<uint32_t>(index_), At<Row>(rows_), stream_);
            });
  }

  // Requires Index, which finds the rows.
  void Segments() {
    Memory segment_rows = Take<Row>(batch_size_), segment_offsets = Take<uint32_t>(batch_size_ + 1),
           outputs = Take<uint32_t>(batch_size_), distinct = Take<uint32_t>(1),
           scratch = Take<uint8_t>(MakeSegmentsScratchBytes(batch_size_, stream_));
    Measure(absl::StrFormat("MakeSegments of %d", batch_size_),
            104.0 * static_cast<double>(batch_size_), batch_size_, [&](size_t) {
              MakeSegments(At<uint32_t>(offsets_), At<Row>(rows_), batch_size_, batch_size_,
                           At<Row>(segment_rows), At<uint32_t>(segment_offsets),
                           At<uint32_t>(outputs), At<uint32_t>(distinct), scratch.data(), stream_);
            });
  }

  // Requires Index. The measured time includes a copy of the rows, because a call overwrites them.
  void Compact() {
    Memory rows = Take<Row>(batch_size_), distinct_rows = Take<Row>(batch_size_),
           distinct = Take<uint32_t>(1),
           scratch = Take<uint8_t>(CompactRowsScratchBytes(batch_size_, stream_));
    Measure(absl::StrFormat("CompactRows of %d", batch_size_),
            64.0 * static_cast<double>(batch_size_), batch_size_, [&](size_t) {
              CopyOnDevice(rows_.data(), rows.data(), rows.bytes(), stream_);
              CompactRows(At<Row>(rows), batch_size_, At<Row>(distinct_rows),
                          At<uint32_t>(distinct), scratch.data(), stream_);
            });
  }

 private:
  static constexpr size_t kTables = 26;

  template <typename T>
  Memory Take(size_t count) {
    return figures_.Take(static_cast<double>(count * sizeof(T)));
  }
  template <typename T>
  static T* At(Memory& memory) {
    return memory.view<T>().data;
  }
  void Measure(const std::string& name, double bytes, double items,
               const std::function<void(size_t)>& call) {
    if (stream_.status().ok()) figures_.Measure(name, bytes, 0, call, items);
  }

  Figures& figures_;
  Stream& stream_;
  const size_t table_keys_, keys_, batch_size_;
  Memory batch_, offsets_, scratch_, held_, merged_, count_, index_, rows_;
};

inline void StagingOps(Figures& figures) {
  StagingFigures staging(figures);
  staging.AddKeys();
  staging.Index();
  staging.Segments();
  staging.Compact();
}

}  // namespace cistern::op
