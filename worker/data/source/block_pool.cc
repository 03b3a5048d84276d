#include "worker/data/source/block_pool.h"

#include <algorithm>
#include <utility>

namespace cistern::data {

void BlockPool::Release(std::vector<HostBatch> batches) {
  absl::MutexLock lock(&mutex_);
  most_ = std::max(most_, batches.size());
  for (HostBatch& batch : batches) {
    if (blocks_.size() >= most_) return;
    SampleBlock& block = blocks_.emplace_back();
    block.label = std::move(batch.label);
    block.dense = std::move(batch.dense);
    for (HostSparseBatch& sparse : batch.sparse) {
      SparseColumn& column = block.sparse.emplace_back();
      column.offsets = std::move(sparse.offsets);
      column.keys = std::move(sparse.keys);
      column.weights = std::move(sparse.weights);
    }
  }
}

SampleBlock BlockPool::Acquire() {
  absl::MutexLock lock(&mutex_);
  if (blocks_.empty()) return {};
  SampleBlock block = std::move(blocks_.back());
  blocks_.pop_back();
  return block;
}

}  // namespace cistern::data
