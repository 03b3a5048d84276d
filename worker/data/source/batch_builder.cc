#include "worker/data/source/batch_builder.h"

#include <algorithm>
#include <array>
#include <bit>

#include "common/base/check.h"
#include "common/base/permutation.h"

namespace cistern::data {
namespace {

void AppendRow(const std::vector<float>& from, size_t width, size_t row, std::vector<float>* to) {
  to->insert(to->end(), from.begin() + row * width, from.begin() + (row + 1) * width);
}

void AppendSample(const HostSparseBatch& from, size_t sample, HostSparseBatch* to) {
  const uint32_t* offsets = from.offsets.data() + sample * from.slot_num;
  const uint32_t base = to->offsets.back();
  for (uint32_t slot = 1; slot <= from.slot_num; ++slot) {
    to->offsets.push_back(base + offsets[slot] - offsets[0]);
  }
  const auto append = [&](const auto& values, auto* made) {
    if (values.empty()) return;  // a batch has either rows or keys
    made->insert(made->end(), values.begin() + offsets[0], values.begin() + offsets[from.slot_num]);
  };
  append(from.rows, &to->rows);
  append(from.keys, &to->keys);
  append(from.weights, &to->weights);
  append(from.shares, &to->shares);
}

// An empty batch with the inputs of `shape` and capacity for its samples.
HostBatch EmptyLike(const HostBatch& shape) {
  HostBatch batch;
  batch.all = shape.all;
  batch.first = shape.first;
  batch.label.reserve(shape.label.size());
  batch.dense.reserve(shape.dense.size());
  for (const HostSparseBatch& sparse : shape.sparse) {
    HostSparseBatch& made = batch.sparse.emplace_back();
    made.slot_num = sparse.slot_num;
    made.offsets.reserve(sparse.offsets.size());
    made.offsets.push_back(0);
  }
  return batch;
}

void AppendSample(const HostBatch& from, size_t sample, HostBatch* to) {
  AppendRow(from.label, from.label.size() / from.size, sample, &to->label);
  AppendRow(from.dense, from.dense.size() / from.size, sample, &to->dense);
  for (size_t i = 0; i < from.sparse.size(); ++i) {
    AppendSample(from.sparse[i], sample, &to->sparse[i]);
  }
  ++to->size;
}

}  // namespace

size_t BatchBytes(const SampleBlock& block, bool segments) {
  // 4 bytes for the row; with segments, also an output and at most a segment's row and offset.
  const size_t occurrence_bytes = segments ? 16 : 4;
  size_t bytes = sizeof(float) * (block.label.size() + block.dense.size());
  for (const SparseColumn& column : block.sparse) {
    bytes += sizeof(uint32_t) * column.offsets.size() + occurrence_bytes * column.keys.size();
    // Two factors; with segments, also a place.
    bytes += (segments ? 12 : 8) * column.weights.size();
  }
  return bytes;
}

HostBatch MakeHostBatch(SampleBlock&& block) {
  HostBatch batch;
  batch.size = batch.all = block.size;
  batch.label = std::move(block.label);
  batch.dense = std::move(block.dense);
  ReturnSlack(&batch.label);
  ReturnSlack(&batch.dense);
  for (SparseColumn& column : block.sparse) {
    HostSparseBatch& sparse = batch.sparse.emplace_back();
    sparse.offsets = std::move(column.offsets);
    ReturnSlack(&sparse.offsets);
    sparse.weights = std::move(column.weights);
    ReturnSlack(&sparse.weights);
    if (!sparse.weights.empty()) sparse.shares = SharesOf(sparse.offsets, sparse.weights);
    if (batch.size == 0) continue;
    sparse.slot_num = static_cast<uint32_t>((sparse.offsets.size() - 1) / batch.size);
  }
  return batch;
}

std::vector<float> SharesOf(absl::Span<const uint32_t> offsets, absl::Span<const float> weights) {
  std::vector<float> shares(weights.size(), 0.0f);
  for (size_t output = 0; output + 1 < offsets.size(); ++output) {
    double sum = 0;
    for (uint32_t k = offsets[output]; k < offsets[output + 1]; ++k) sum += double{weights[k]};
    if (sum == 0) continue;
    for (uint32_t k = offsets[output]; k < offsets[output + 1]; ++k) {
      shares[k] = static_cast<float>(double{weights[k]} / sum);
    }
  }
  return shares;
}

void ShuffleSamples(uint64_t seed, uint64_t stream, std::vector<HostBatch>* batches) {
  if (batches->empty()) return;
  std::vector<size_t> ends;  // by batch: its samples and those of all before it
  for (const HostBatch& batch : *batches) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + batch.size);
  }
  const std::vector<size_t> places = Permutation(seed, stream, ends.back());
  std::vector<HostBatch> shuffled;
  shuffled.reserve(batches->size());
  for (size_t next = 0; const HostBatch& like : *batches) {
    HostBatch& batch = shuffled.emplace_back(EmptyLike(like));
    for (size_t end = next + like.size; next < end; ++next) {
      const size_t from = static_cast<size_t>(
          std::upper_bound(ends.begin(), ends.end(), places[next]) - ends.begin());
      const HostBatch& source = (*batches)[from];
      AppendSample(source, places[next] - (ends[from] - source.size), &batch);
    }
    for (HostSparseBatch& sparse : batch.sparse) {
      ReturnSlack(&sparse.rows);
      ReturnSlack(&sparse.keys);
    }
  }
  *batches = std::move(shuffled);
}

void SegmentBuilder::Build(HostBatch* batch) {
  for (HostSparseBatch& sparse : batch->sparse) Build(&sparse);
}

void SegmentBuilder::Build(HostSparseBatch* sparse) {
  const size_t count = sparse->rows.size();
  const bool weighted = !sparse->weights.empty();
  occurrences_.resize(count);
  outputs_.resize(weighted ? count : 0);
  Row row_max = 0;
  for (size_t output = 0; output + 1 < sparse->offsets.size(); ++output) {
    for (uint32_t k = sparse->offsets[output]; k < sparse->offsets[output + 1]; ++k) {
      if (weighted) outputs_[k] = static_cast<uint32_t>(output);
      occurrences_[k] = uint64_t{sparse->rows[k]} << 32 | (weighted ? k : output);
      row_max = std::max(row_max, sparse->rows[k]);
    }
  }
  Sort(row_max);
  // Whether a segment begins is as random as the keys, so nothing branches on it.
  const auto begins = [&](size_t k) {
    return k == 0 || occurrences_[k] >> 32 != occurrences_[k - 1] >> 32;
  };
  size_t distinct = 0;
  for (size_t k = 0; k < count; ++k) distinct += begins(k);
  sparse->segment_rows.resize(distinct);
  sparse->segment_offsets.resize(distinct + 1);
  sparse->segment_outputs.resize(count);
  Row* const rows = sparse->segment_rows.data();
  uint32_t* const offsets = sparse->segment_offsets.data();
  offsets[0] = 0;
  for (size_t k = 0, begun = 0; k < count; ++k) {
    begun += begins(k);
    rows[begun - 1] = static_cast<Row>(occurrences_[k] >> 32);
    offsets[begun] = static_cast<uint32_t>(k + 1);
    sparse->segment_outputs[k] = static_cast<uint32_t>(occurrences_[k]);
  }
  sparse->segment_places.clear();
  if (!weighted) return;
  sparse->segment_places = sparse->segment_outputs;
  for (uint32_t& output : sparse->segment_outputs) output = outputs_[output];
}

// A radix sort (least significant digit first) on the bits of the row only. The sort is stable and
// its input is in the order of outputs, so outputs stay ascending within a row.
void SegmentBuilder::Sort(Row row_max) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  if (occurrences_.size() < kDigits / 4) {
    std::sort(occurrences_.begin(), occurrences_.end());
    return;
  }
  scratch_.resize(occurrences_.size());
  for (int shift = 32; shift < 32 + static_cast<int>(std::bit_width(row_max));
       shift += kDigitBits) {
    std::array<uint32_t, kDigits> starts = {};
    for (uint64_t x : occurrences_) ++starts[(x >> shift) & (kDigits - 1)];
    for (uint32_t sum = 0; uint32_t & start : starts) start = std::exchange(sum, sum + start);
    for (uint64_t x : occurrences_) scratch_[starts[(x >> shift) & (kDigits - 1)]++] = x;
    occurrences_.swap(scratch_);
  }
}

}  // namespace cistern::data
