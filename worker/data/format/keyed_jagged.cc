#include "worker/data/format/keyed_jagged.h"

#include <cmath>
#include <memory>
#include <utility>

#include "common/base/philox.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

// Computes the offsets and per-key fields from keys, stride and lengths.
void FillOffsets(KeyedJagged* batch) {
  batch->offsets.assign(1, 0);
  batch->length_per_key.clear();
  batch->offset_per_key.assign(1, 0);
  for (size_t feature = 0; feature < batch->keys.size(); ++feature) {
    for (size_t sample = 0; sample < batch->stride; ++sample) {
      batch->offsets.push_back(batch->offsets.back() +
                               batch->lengths[feature * batch->stride + sample]);
    }
    batch->length_per_key.push_back(batch->offsets.back() - batch->offset_per_key.back());
    batch->offset_per_key.push_back(batch->offsets.back());
  }
}

}  // namespace

std::map<std::string, JaggedFeature> KeyedJagged::ToDict() const {
  std::map<std::string, JaggedFeature> dict;
  for (size_t feature = 0; feature < keys.size(); ++feature) {
    JaggedFeature& one = dict[keys[feature]];
    const uint64_t begin = offset_per_key[feature];
    one.values.assign(values.begin() + static_cast<ptrdiff_t>(begin),
                      values.begin() + static_cast<ptrdiff_t>(offset_per_key[feature + 1]));
    one.offsets.push_back(0);
    for (size_t sample = 0; sample < stride; ++sample) {
      one.lengths.push_back(lengths[feature * stride + sample]);
      one.offsets.push_back(offsets[feature * stride + sample + 1] - begin);
    }
  }
  return dict;
}

KeyedJagged MakeKeyedJagged(const SampleBlock& block) {
  KeyedJagged batch;
  batch.stride = block.size;
  for (const SparseColumn& column : block.sparse) {
    const size_t slots = block.size == 0 ? 0 : (column.offsets.size() - 1) / block.size;
    for (size_t slot = 0; slot < slots; ++slot) {
      batch.keys.push_back(absl::StrCat("cat_", batch.keys.size()));
      for (size_t sample = 0; sample < block.size; ++sample) {
        const uint32_t* offset = column.offsets.data() + sample * slots + slot;
        batch.lengths.push_back(offset[1] - offset[0]);
        batch.values.insert(batch.values.end(), column.keys.begin() + offset[0],
                            column.keys.begin() + offset[1]);
      }
    }
  }
  FillOffsets(&batch);
  return batch;
}

absl::StatusOr<MultiHot> MultiHot::Create(const MultiHotOptions& options,
                                          std::vector<uint64_t> num_embeddings) {
  if (options.size == 0) {
    return absl::InvalidArgumentError("multi_hot_size is 0: it must be at least 1");
  }
  for (size_t feature = 0; feature < num_embeddings.size(); ++feature) {
    if (num_embeddings[feature] > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("feature ", feature, " has a table without rows"));
  }
  return MultiHot(options, std::move(num_embeddings));
}

MultiHot::MultiHot(const MultiHotOptions& options, std::vector<uint64_t> num_embeddings)
    : options_(options),
      num_embeddings_(std::move(num_embeddings)),
      before_(num_embeddings_.size()),
      after_(num_embeddings_.size()) {}

Key MultiHot::Weight(size_t feature, Key row, uint32_t column) const {
  const PhiloxBlock bits = Philox(/*seed=*/feature, row, column);
  const uint64_t word = uint64_t{bits.word[0]} << 32 | bits.word[1];
  const double u = static_cast<double>((word >> 11) + 1) * 0x1p-53;  // (0, 1]
  const double rows = static_cast<double>(num_embeddings_[feature]);
  const double x = options_.distribution == MultiHotDistribution::kUniform
                       ? (1 - u) * rows
                       : std::fmod(std::floor(std::pow(u, -1 / 0.25) - 1), rows);
  return static_cast<Key>(x);
}

void MultiHot::Append(size_t feature, Key value, std::vector<Key>* values) {
  const size_t first = values->size();
  values->push_back(value);
  for (uint32_t column = 1; applies(feature) && column < options_.size; ++column) {
    values->push_back(Weight(feature, value, column));
  }
  if (!options_.count_frequencies) return;
  ++before_[feature][value];
  for (size_t i = first; i < values->size(); ++i) ++after_[feature][(*values)[i]];
}

absl::StatusOr<KeyedJagged> MultiHot::Apply(const KeyedJagged& batch) {
  if (batch.keys.size() != num_embeddings_.size() ||
      batch.values.size() != batch.keys.size() * batch.stride) {
    return absl::InvalidArgumentError(
        absl::StrCat("the multi-hot transform takes ", num_embeddings_.size(),
                     " features of one value a sample, but the batch has ", batch.keys.size(),
                     " features, ", batch.stride, " samples and ", batch.values.size(), " values"));
  }
  KeyedJagged result;
  result.keys = batch.keys;
  result.stride = batch.stride;
  for (size_t i = 0; i < batch.values.size(); ++i) {
    const size_t feature = i / batch.stride, before = result.values.size();
    if (batch.values[i] >= num_embeddings_[feature]) {
      return absl::OutOfRangeError(absl::StrCat(batch.keys[feature], ", sample ", i % batch.stride,
                                                ": ", batch.values[i], " is not below the ",
                                                num_embeddings_[feature], " rows of its table"));
    }
    Append(feature, batch.values[i], &result.values);
    result.lengths.push_back(static_cast<uint32_t>(result.values.size() - before));
  }
  FillOffsets(&result);
  return result;
}

absl::Status MultiHot::SaveFrequencies(FileSystem& files, const std::string& path) const {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, path));
  for (size_t feature = 0; feature < before_.size(); ++feature) {
    for (const auto& [when, counts] :
         {std::pair("before", &before_[feature]), std::pair("after", &after_[feature])}) {
      for (const auto& [value, times] : *counts) {
        CISTERN_RETURN_IF_ERROR(
            file->Append(absl::StrCat(feature, "\t", when, "\t", value, "\t", times, "\n")));
      }
    }
  }
  return file->Close();
}

}  // namespace cistern
