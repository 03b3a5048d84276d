// Makes lists of samples, passes from them, and samples from passes, for tests that compare passes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "worker/data/source/pass_source.h"

namespace cistern::data {

inline const std::vector<uint32_t> kSlots = {3, 1};

// One sample. Its label is its number, so that all samples differ.
struct Sample {
  float label = 0;
  std::vector<float> dense;
  std::vector<std::vector<std::vector<Key>>> keys;  // [input][slot]
  bool operator==(const Sample&) const = default;
};

inline std::vector<Sample> MakeSamples(size_t count, uint64_t key_max = 300) {
  std::mt19937_64 random(count);
  std::vector<Sample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].label = static_cast<float>(i);
    samples[i].dense = {static_cast<float>(random() % 100), 1};
    for (uint32_t slots : kSlots) {
      auto& input = samples[i].keys.emplace_back(slots);
      for (std::vector<Key>& slot : input) {
        for (size_t n = random() % 4; n > 0; --n) slot.push_back(random() % key_max);
      }
    }
  }
  return samples;
}

class ListReader : public SampleReader {
 public:
  ListReader(const std::vector<Sample>& samples, size_t step) : samples_(samples), step_(step) {}

  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    const size_t count = std::min({max_samples, step_, samples_.size() - next_});
    for (size_t n = 0; n < count; ++n, ++block->size) {
      const Sample& sample = samples_[next_++];
      block->label.push_back(sample.label);
      block->dense.insert(block->dense.end(), sample.dense.begin(), sample.dense.end());
      for (size_t i = 0; i < kSlots.size(); ++i) {
        for (const std::vector<Key>& keys : sample.keys[i]) {
          SparseColumn& column = block->sparse[i];
          column.keys.insert(column.keys.end(), keys.begin(), keys.end());
          column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
        }
      }
    }
    return count;
  }

 private:
  const std::vector<Sample>& samples_;
  const size_t step_;
  size_t next_ = 0;
};

inline PassOptions SmallPasses(size_t batchsize) {
  PassOptions options;
  options.shape = {1, 2, kSlots, {}};
  options.batchsize = batchsize;
  options.value_bytes = {100, 40};
  return options;
}

// All passes of a source over `samples`. keys: collects the keys; null: the host does.
inline std::vector<Pass> AllPasses(const PassOptions& options, const std::vector<Sample>& samples,
                                   size_t step = 1000, const PassCursor& start = {},
                                   std::unique_ptr<KeyCollector> keys = nullptr) {
  PassSource source(
      options, [&](uint32_t) { return std::make_unique<ListReader>(samples, step); }, start,
      std::move(keys));
  std::vector<Pass> passes;
  while (true) {
    auto pass = source.Next();
    EXPECT_TRUE(pass.ok()) << pass.status();
    if (!pass.ok() || *pass == nullptr) return passes;
    passes.push_back(std::move(**pass));
  }
}

// The samples of a batch; key_of(input, row) turns rows back into keys.
template <typename KeyOf>
std::vector<Sample> SamplesOf(const HostBatch& batch, const KeyOf& key_of) {
  std::vector<Sample> samples(batch.size);
  EXPECT_EQ(batch.label.size(), batch.size);
  EXPECT_EQ(batch.dense.size(), 2 * batch.size);
  for (size_t n = 0; n < batch.size; ++n) {
    samples[n].label = batch.label[n];
    samples[n].dense = {batch.dense[2 * n], batch.dense[2 * n + 1]};
    for (size_t i = 0; i < kSlots.size(); ++i) {
      const HostSparseBatch& sparse = batch.sparse[i];
      EXPECT_EQ(sparse.slot_num, kSlots[i]);
      auto& input = samples[n].keys.emplace_back(kSlots[i]);
      for (size_t slot = 0; slot < kSlots[i]; ++slot) {
        const size_t output = n * kSlots[i] + slot;
        for (uint32_t k = sparse.offsets[output]; k < sparse.offsets[output + 1]; ++k) {
          input[slot].push_back(key_of(i, sparse.rows[k]));
        }
      }
    }
  }
  return samples;
}

inline std::vector<Sample> SamplesOf(const Pass& pass, const HostBatch& batch) {
  return SamplesOf(batch, [&pass](size_t i, Row row) { return pass.keys[i].keys()[row]; });
}

inline std::vector<std::vector<Sample>> BatchesOf(const std::vector<Pass>& passes) {
  std::vector<std::vector<Sample>> batches;
  for (const Pass& pass : passes) {
    for (const HostBatch& batch : pass.batches) batches.push_back(SamplesOf(pass, batch));
  }
  return batches;
}

}  // namespace cistern::data
