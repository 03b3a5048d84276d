#include "worker/train/data_look.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "worker/model/metric/auc.h"
#include "worker/pass/data_source.h"

namespace cistern {
namespace {

constexpr float kNoLabel = -0.5f;  // below: a missing label
constexpr size_t kMaxNamed = 5;    // columns in a message

struct Uses {
  uint64_t samples = 0, positives = 0;
};

// Named as the recipe does, or by place: "slots[3]".
std::string SlotName(const model::ModelConfig& config, const ColumnNames& names, size_t input,
                     uint32_t slot) {
  size_t place = slot;
  for (size_t i = 0; i < input; ++i) place += config.data.sparse[i].slot_num;
  if (place < names.slots.size() && !names.slots[place].empty()) return names.slots[place];
  return absl::StrCat(config.data.sparse[input].top, "[", slot, "]");
}

std::string DenseName(const ColumnNames& names, size_t column) {
  const bool named = column < names.dense.size() && !names.dense[column].empty();
  return named ? names.dense[column] : absl::StrCat(column);
}

// What the samples say about one slot.
struct SlotLook {
  size_t input = 0;
  uint32_t slot = 0;  // of the input
  std::string name;
  bool single = true;  // each sample holds exactly one key
  absl::flat_hash_map<Key, Uses> keys;
};

// The first samples of a data set.
struct Head {
  data::SampleBlock block;
  std::vector<float> weights;  // by sample, or empty
};

absl::StatusOr<Head> ReadHead(const data::DataSetOptions& data) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::SampleReader> reader,
                           data::OpenDataSet(data));
  Head head;
  data::SampleBlock& block = head.block;
  block.Reset(data.shape.slot_nums.size());
  while (block.size < kSamplesLookedAt) {
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kSamplesLookedAt - block.size, &block));
    if (got == 0) break;
  }
  if (data.shape.weighted) head.weights = data::TakeWeights(block.size, &block.label);
  return head;
}

// The labels of one sample are the first label's: a column that decides any other is not found.
bool IsPositive(const data::SampleBlock& block, size_t label_dim, size_t sample) {
  return block.label[sample * label_dim] > 0.5f;
}

std::vector<SlotLook> LookAtSlots(const model::ModelConfig& config, const ColumnNames& names,
                                  const data::SampleBlock& block) {
  std::vector<SlotLook> looks;
  for (size_t input = 0; input < block.sparse.size(); ++input) {
    const uint32_t slots = config.data.sparse[input].slot_num;
    const data::SparseColumn& column = block.sparse[input];
    for (uint32_t slot = 0; slot < slots; ++slot) {
      SlotLook look;
      look.input = input;
      look.slot = slot;
      look.name = SlotName(config, names, input, slot);
      for (size_t i = 0; i < block.size; ++i) {
        const uint32_t* offset = &column.offsets[i * slots + slot];
        look.single &= offset[1] - offset[0] == 1;
        if (!look.single) break;
        Uses& uses = look.keys[column.keys[*offset]];
        ++uses.samples;
        uses.positives += IsPositive(block, config.data.label_dim, i) ? 1 : 0;
      }
      looks.push_back(std::move(look));
    }
  }
  return looks;
}

// Whether the keys that occur often leave nothing to predict.
bool DecidesLabel(const SlotLook& look, uint64_t samples) {
  constexpr uint64_t kOften = 10;
  if (!look.single || look.keys.size() < 2) return false;
  uint64_t covered = 0, right = 0;
  for (const auto& [key, uses] : look.keys) {
    if (uses.samples < kOften) continue;
    covered += uses.samples;
    right += std::max(uses.positives, uses.samples - uses.positives);
  }
  return covered * 10 >= samples * 9 &&
         static_cast<double>(right) >= 0.999 * static_cast<double>(covered);
}

std::string NamesOf(std::vector<std::string> names) {
  const size_t all = names.size();
  names.resize(std::min(all, kMaxNamed));
  std::string text = absl::StrJoin(names, ", ");
  if (all > kMaxNamed) absl::StrAppend(&text, " and ", all - kMaxNamed, " more");
  return text;
}

// Slots and dense columns with one value in all samples that were read.
struct Constants {
  std::vector<const SlotLook*> slots;
  std::vector<size_t> columns;
  bool empty() const { return slots.empty() && columns.empty(); }
};

// Removes those that have another value in `block`.
void RemoveVarying(const model::ModelConfig& config, const data::SampleBlock& head,
                   const data::SampleBlock& block, Constants* constants) {
  std::erase_if(constants->slots, [&](const SlotLook* look) {
    const data::SparseColumn& column = block.sparse[look->input];
    const uint32_t slots = config.data.sparse[look->input].slot_num;
    const Key only = look->keys.begin()->first;
    for (size_t i = 0; i < block.size; ++i) {
      const uint32_t* offset = &column.offsets[i * slots + look->slot];
      if (offset[1] - offset[0] != 1 || column.keys[*offset] != only) return true;
    }
    return false;
  });
  const size_t columns = config.data.dense_dim;
  std::erase_if(constants->columns, [&](size_t c) {
    for (size_t i = 0; i < block.size; ++i) {
      if (block.dense[i * columns + c] != head.dense[c]) return true;
    }
    return false;
  });
}

// Reads on, after the head of the data, as long as something is constant. Returns the samples read.
absl::StatusOr<size_t> ReadOn(const model::ModelConfig& config, const data::DataSetOptions& data,
                              const data::SampleBlock& head, Constants* constants) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<data::SampleReader> reader,
                           data::OpenDataSet(data));
  size_t samples = 0;
  while (samples < kSamplesForConstants && !constants->empty()) {
    data::SampleBlock block;
    block.Reset(data.shape.slot_nums.size());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kSamplesLookedAt, &block));
    if (got == 0) break;
    samples += got;
    RemoveVarying(config, head, block, constants);
  }
  return samples;
}

class Looker {
 public:
  // data: of the training.
  Looker(const model::ModelConfig& config, const ColumnNames& names,
         const data::DataSetOptions& data, const Head& train, const Head* eval)
      : config_(config),
        names_(names),
        data_(data),
        train_(train.block),
        weights_(train.weights),
        eval_(eval == nullptr ? nullptr : &eval->block) {}

  absl::StatusOr<DataLook> Look() {
    look_.samples = train_.size;
    for (size_t i = 0; i < train_.size; ++i) {
      positives_ += IsPositive(train_, config_.data.label_dim, i) ? 1 : 0;
    }
    if (train_.size > 0 && config_.data.label_dim == 1) look_.positives = ShareOfPositives();
    LookAtWeights();
    LookAtLabels();
    LookAtAllSlots();
    LookAtColumns();
    WarnOfConstants();
    WarnOfLearningRates();
    return look_;
  }

 private:
  // Too few of one class: every column "decides" the label.
  bool has_both_classes() const {
    const uint64_t least = std::max<uint64_t>(train_.size / 100, 10);
    return positives_ >= least && train_.size - positives_ >= least;
  }

  double ShareOfPositives() const {
    if (weights_.empty()) {
      return static_cast<double>(positives_) / static_cast<double>(train_.size);
    }
    double positives = 0, all = 0;
    for (size_t i = 0; i < train_.size; ++i) {
      const auto weight = static_cast<double>(weights_[i]);
      all += weight;
      if (IsPositive(train_, 1, i)) positives += weight;
    }
    return all > 0 ? positives / all : 0;
  }

  void LookAtWeights() {
    if (weights_.empty() ||
        std::any_of(weights_.begin(), weights_.end(), [](float w) { return w > 0; })) {
      return;
    }
    look_.warnings.push_back(absl::StrCat(
        "the weights of the first ", train_.size,
        " samples are all 0 and the model cannot learn from them: is it the right column?"));
  }

  void LookAtLabels() {
    uint64_t others = 0;
    float example = 0;
    for (const float label : train_.label) {
      if (label == 0 || label == 1 || label < kNoLabel) continue;
      if (others++ == 0) example = label;
    }
    if (others == 0) return;
    look_.warnings.push_back(absl::StrFormat(
        "%d of the first %d labels of the training data are neither 0 nor 1, for example %g; the "
        "loss takes a label as the probability of a click",
        others, train_.label.size(), example));
  }

  void LookAtAllSlots() {
    slots_ = LookAtSlots(config_, names_, train_);
    const std::vector<SlotLook> eval =
        eval_ == nullptr ? std::vector<SlotLook>() : LookAtSlots(config_, names_, *eval_);
    std::vector<std::string> deciding;
    for (size_t s = 0; s < slots_.size(); ++s) {
      const SlotLook& slot = slots_[s];
      if (IsConstant(slot) &&
          (eval.empty() ||
           (IsConstant(eval[s]) && eval[s].keys.begin()->first == slot.keys.begin()->first))) {
        constants_.slots.push_back(&slot);
      }
      if (has_both_classes() && DecidesLabel(slot, train_.size)) deciding.push_back(slot.name);
    }
    WarnOfDeciding("slot", deciding);
  }

  static bool IsConstant(const SlotLook& look) { return look.single && look.keys.size() == 1; }

  void LookAtColumns() {
    const size_t columns = config_.data.dense_dim, labels = config_.data.label_dim;
    std::vector<std::string> deciding;
    for (size_t c = 0; c < columns; ++c) {
      float lowest = train_.size > 0 ? train_.dense[c] : 0, highest = lowest;
      std::vector<std::pair<float, bool>> values;
      for (size_t i = 0; i < train_.size; ++i) {
        const float value = train_.dense[i * columns + c];
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
        values.emplace_back(value, IsPositive(train_, labels, i));
      }
      if (lowest == highest) constants_.columns.push_back(c);
      if (has_both_classes() && Separates(std::move(values))) {
        deciding.push_back(DenseName(names_, c));
      }
    }
    WarnOfDeciding("dense column", deciding);
  }

  // Whether a threshold of the column separates the classes.
  static bool Separates(std::vector<std::pair<float, bool>> values) {
    std::sort(values.begin(), values.end());
    model::PairCount pairs;
    for (size_t first = 0; first < values.size();) {
      uint64_t counts[2] = {0, 0};
      size_t i = first;
      for (; i < values.size() && values[i].first == values[first].first; ++i) {
        ++counts[values[i].second ? 1 : 0];
      }
      pairs.AddTied(counts[1], counts[0]);
      first = i;
    }
    return pairs.has_both_classes() && (pairs.Area() > 0.999 || pairs.Area() < 0.001);
  }

  void WarnOfConstants() {
    constexpr uint64_t kLeast = 100;  // fewer samples say nothing
    if (constants_.empty() || train_.size < kLeast) return;
    const absl::StatusOr<size_t> samples = ReadOn(config_, data_, train_, &constants_);
    if (!samples.ok()) return;  // training reports bad data
    std::vector<std::string> slots, columns;
    for (const SlotLook* slot : constants_.slots) slots.push_back(slot->name);
    for (const size_t column : constants_.columns) columns.push_back(DenseName(names_, column));
    WarnOfConstant("slot", slots, *samples);
    WarnOfConstant("dense column", columns, *samples);
  }

  void WarnOfConstant(const char* kind, const std::vector<std::string>& names, size_t samples) {
    if (names.empty()) return;
    const bool one = names.size() == 1;
    look_.warnings.push_back(absl::StrCat(
        kind, one ? " " : "s ", NamesOf(names), one ? " has" : " have", " one value in the first ",
        samples, " samples and the model cannot learn from ", one ? "it: is it" : "them: are they",
        " the right column", one ? "?" : "s?"));
  }

  void WarnOfLearningRates() {
    if (config_.optimizer.schedule.base == 0) {
      look_.warnings.push_back(
          "the learning rate of the dense weights is 0: they keep their first values");
    }
    for (const model::EmbeddingConfig& embedding : config_.embeddings) {
      if (embedding.optimizer.schedule.base != 0) continue;
      look_.warnings.push_back(absl::StrCat("the learning rate of the rows of '", embedding.name,
                                            "' is 0: they keep their first values"));
    }
  }

  void WarnOfDeciding(const char* kind, const std::vector<std::string>& names) {
    if (names.empty()) return;
    look_.warnings.push_back(absl::StrCat(
        kind, names.size() == 1 ? " " : "s ", NamesOf(names),
        names.size() == 1 ? " decides" : " decide", " the label in the first ", train_.size,
        " samples: it probably contains what happened after the click; leave it out"));
  }

  const model::ModelConfig& config_;
  const ColumnNames& names_;
  const data::DataSetOptions& data_;
  const data::SampleBlock& train_;
  const std::vector<float>& weights_;  // of train_, or empty
  const data::SampleBlock* const eval_;
  uint64_t positives_ = 0;
  std::vector<SlotLook> slots_;
  Constants constants_;
  DataLook look_;
};

absl::StatusOr<DataLook> LookAtSamples(const model::ModelConfig& config, const ColumnNames& names) {
  data::DataSetOptions data = model::DataSetOf(config, config.data.source);
  data.num_samples = config.data.num_samples;
  CISTERN_ASSIGN_OR_RETURN(const Head train, ReadHead(data));
  if (config.data.eval_source.empty()) return Looker(config, names, data, train, nullptr).Look();
  data::DataSetOptions eval_data = model::DataSetOf(config, config.data.eval_source);
  eval_data.num_samples = config.data.eval_num_samples;
  CISTERN_ASSIGN_OR_RETURN(const Head eval, ReadHead(eval_data));
  return Looker(config, names, data, train, &eval).Look();
}

}  // namespace

absl::StatusOr<DataLook> LookAtData(const model::ModelConfig& config, const ColumnNames& names,
                                    uint64_t workers) {
  if (config.cistern.stream) return DataLook();  // looking would wait for its samples
  CISTERN_ASSIGN_OR_RETURN(DataLook look, LookAtSamples(config, names));
  const std::string few = FewStreamsWarning(config, workers);
  if (!few.empty()) look.warnings.push_back(few);
  return look;
}

}  // namespace cistern
