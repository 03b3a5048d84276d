#include "worker/data/prepare/multi_hot.h"

#include <cmath>
#include <memory>
#include <utility>

#include "common/base/philox.h"
#include "common/io/new_file.h"

namespace cistern::data {

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
  const bool is_large = num_embeddings_[feature] >= options_.min_table_size;
  for (uint32_t column = 1; is_large && column < options_.size; ++column) {
    values->push_back(Weight(feature, value, column));
  }
  if (!options_.count_frequencies) return;
  ++before_[feature][value];
  for (size_t i = first; i < values->size(); ++i) ++after_[feature][(*values)[i]];
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

}  // namespace cistern::data
