#include "worker/data/format/sample_block.h"

#include "common/base/check.h"

namespace cistern::data {

SampleBlock::Sizes SampleBlock::sizes() const {
  Sizes sizes{label.size(), dense.size(), {}, {}};
  for (const SparseColumn& column : sparse) {
    sizes.offsets.push_back(column.offsets.size());
    sizes.keys.push_back(column.keys.size());
  }
  return sizes;
}

void SampleBlock::Reserve(const Sizes& sizes) {
  label.reserve(sizes.label);
  dense.reserve(sizes.dense);
  for (size_t i = 0; i < sizes.keys.size(); ++i) {
    sparse[i].offsets.reserve(sizes.offsets[i]);
    sparse[i].keys.reserve(sizes.keys[i] + sizes.keys[i] / 64);  // slots may hold several keys
  }
}

void SampleBlock::Truncate(size_t count) {
  CISTERN_CHECK(count <= size);
  if (count == size) return;
  label.resize(label.size() / size * count);
  dense.resize(dense.size() / size * count);
  for (SparseColumn& column : sparse) {
    column.offsets.resize((column.offsets.size() - 1) / size * count + 1);
    column.keys.resize(column.offsets.back());
    if (!column.weights.empty()) column.weights.resize(column.keys.size());
  }
  size = count;
}

void SampleBlock::Append(const SampleBlock& from, size_t first, size_t count) {
  CISTERN_CHECK(first + count <= from.size && from.sparse.size() == sparse.size());
  if (count == 0) return;
  const auto copy = [&](const std::vector<float>& source, std::vector<float>* target) {
    const size_t width = source.size() / from.size;
    target->insert(target->end(), source.begin() + first * width,
                   source.begin() + (first + count) * width);
  };
  copy(from.label, &label);
  copy(from.dense, &dense);
  for (size_t i = 0; i < sparse.size(); ++i) {
    const SparseColumn& source = from.sparse[i];
    const size_t slots = (source.offsets.size() - 1) / from.size;
    const uint32_t* offsets = source.offsets.data() + first * slots;
    const uint32_t base = sparse[i].offsets.back();
    for (size_t k = 1; k <= count * slots; ++k) {
      sparse[i].offsets.push_back(base + offsets[k] - offsets[0]);
    }
    sparse[i].keys.insert(sparse[i].keys.end(), source.keys.begin() + offsets[0],
                          source.keys.begin() + offsets[count * slots]);
    if (source.weights.empty()) continue;
    sparse[i].weights.insert(sparse[i].weights.end(), source.weights.begin() + offsets[0],
                             source.weights.begin() + offsets[count * slots]);
  }
  size += count;
}

std::vector<float> TakeWeights(size_t samples, std::vector<float>* labels) {
  std::vector<float> weights;
  if (samples == 0) return weights;
  const size_t width = labels->size() / samples, kept = width - 1;
  weights.reserve(samples);
  for (size_t i = 0; i < samples; ++i) {
    weights.push_back((*labels)[i * width + kept]);
    for (size_t k = 0; k < kept; ++k) (*labels)[i * kept + k] = (*labels)[i * width + k];
  }
  labels->resize(samples * kept);
  return weights;
}

}  // namespace cistern::data
