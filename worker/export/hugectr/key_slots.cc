#include "worker/export/hugectr/key_slots.h"

#include <algorithm>

#include "worker/data/format/data_set.h"
#include "worker/export/hugectr/sparse_rows.h"

namespace cistern {
namespace {

constexpr size_t kBlockSamples = 4096;
constexpr size_t kReadRows = size_t{1} << 14;

}  // namespace

KeySlots::KeySlots(const model::ModelConfig& config, FileSystem& files, size_t embedding)
    : config_(config), files_(files), embedding_(embedding) {
  Key end = 0;
  for (const uint64_t size : config.embeddings[embedding].key_space.sizes) {
    ends_.push_back(end += size);
  }
}

absl::StatusOr<uint64_t> KeySlots::Of(Key key) {
  if (!ends_.empty()) {
    const absl::StatusOr<uint64_t> slot = FromSizes(key);
    // The readers enforce these sizes, except for a hash table, whose keys may exceed them.
    const bool bound = !config_.data.slot_sizes.empty() || config_.embeddings[embedding_].one_hot;
    if (slot.ok() || bound) return slot;
  }
  if (!std::exchange(data_is_read_, true)) CISTERN_RETURN_IF_ERROR(ReadData());
  Row row = index_.Find(key);
  if (row == data::KeyIndex::kNone && !std::exchange(file_is_read_, true)) {
    CISTERN_RETURN_IF_ERROR(ReadModelFile());
    row = index_.Find(key);
  }
  if (row != data::KeyIndex::kNone) return slots_[row];
  const model::EmbeddingConfig& embedding = config_.embeddings[embedding_];
  return absl::InvalidArgumentError(absl::StrCat(
      "key ", key, " of embedding '", embedding.name, "' occurs in no slot of ",
      config_.data.source,
      data_error_.ok() ? "" : absl::StrCat(" (read up to here: ", data_error_.message(), ")"),
      ", so the slot to write into HugeCTR's file of a Localized embedding is unknown: add the "
      "data "
      "that the key was trained on to layers[0].source, or set slot_size_array in "
      "sparse_embedding_hparam"));
}

absl::StatusOr<uint64_t> KeySlots::FromSizes(Key key) const {
  const model::EmbeddingConfig& embedding = config_.embeddings[embedding_];
  const uint32_t slots = config_.data.sparse[embedding.input].slot_num;
  const uint64_t slot =
      static_cast<uint64_t>(std::upper_bound(ends_.begin(), ends_.end(), key) - ends_.begin());
  const uint32_t first = embedding.key_space.first;
  if (slot >= first && slot < first + slots) return slot - first;
  return absl::InvalidArgumentError(absl::StrCat(
      "key ", key, " of embedding '", embedding.name,
      "' is outside the key ranges of slot_size_array: raise the sizes, or start the keys of each "
      "slot at the sum of the sizes before it"));
}

absl::Status KeySlots::ReadData() {
  const size_t input = config_.embeddings[embedding_].input;
  const uint32_t slot_num = config_.data.sparse[input].slot_num;
  data::DataSetOptions options = model::DataSetOf(config_, config_.data.source);
  options.num_samples = config_.data.num_samples;
  absl::StatusOr<std::unique_ptr<data::SampleReader>> opened = data::OpenDataSet(options);
  if (!opened.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the slots of the keys of embedding '", config_.embeddings[embedding_].name,
        "' must be read from the training data, which failed: ", opened.status().message(),
        "; set layers[0].source to that data, or set slot_size_array in sparse_embedding_hparam"));
  }
  const std::unique_ptr<data::SampleReader> reader = *std::move(opened);
  data::SampleBlock block;
  while (true) {
    block.Reset(config_.data.sparse.size());
    const absl::StatusOr<size_t> samples = reader->Read(kBlockSamples, &block);
    data_error_ = samples.status();  // training may not have reached the bad record
    const data::SparseColumn& column = block.sparse[input];
    for (size_t place = 0; place + 1 < column.offsets.size(); ++place) {
      for (uint32_t i = column.offsets[place]; i < column.offsets[place + 1]; ++i) {
        Note(column.keys[i], static_cast<uint32_t>(place % slot_num));
      }
    }
    if (!samples.ok() || *samples == 0) return absl::OkStatus();
  }
}

absl::Status KeySlots::ReadModelFile() {
  if (embedding_ >= config_.solver.sparse_model_files.size()) return absl::OkStatus();
  const std::string& path = config_.solver.sparse_model_files[embedding_];
  if (path.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const SparseShape shape, SparseShapeOf(config_, embedding_));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SparseReader> reader,
                           SparseReader::Open(files_, path, shape));
  std::vector<Key> keys;
  std::vector<uint64_t> slots;
  std::vector<float> values;
  for (uint64_t first = 0; first < reader->rows(); first += keys.size()) {
    keys.resize(std::min<uint64_t>(kReadRows, reader->rows() - first));
    CISTERN_RETURN_IF_ERROR(reader->Read(first, &keys, &slots, &values));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (index_.Find(keys[i]) == data::KeyIndex::kNone)
        Note(keys[i], static_cast<uint32_t>(slots[i]));
    }
  }
  return absl::OkStatus();
}

void KeySlots::Note(Key key, uint32_t slot) {
  const Row row = index_.Add(key);
  if (row == slots_.size()) {
    slots_.push_back(slot);
  } else {
    slots_[row] = std::min(slots_[row], slot);
  }
}

}  // namespace cistern
