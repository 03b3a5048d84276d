#include "serve/server/samples.h"

#include <unordered_map>
#include <utility>

#include "serve/server/elements.h"
#include "worker/data/recipe/text_rows.h"

namespace cistern::serve {
namespace {

constexpr absl::string_view kDense = "dense", kKeys = ".keys", kOffsets = ".offsets",
                            kWeights = ".weights";
constexpr absl::string_view kDes = "DES", kCatColumn = "CATCOLUMN", kRowIndex = "ROWINDEX";
constexpr absl::string_view kText = "text";

bool IsHugeCtrName(absl::string_view name) {
  return name == kDes || name == kCatColumn || name == kRowIndex;
}

absl::Status TooFew(const std::string& name, uint64_t have, const std::string& need) {
  return absl::InvalidArgumentError(
      absl::StrCat("input ", Quoted(name), " has ", have, " elements; this model needs ", need));
}

}  // namespace

// Decodes one request into a Samples.
class SampleDecoder {
 public:
  SampleDecoder(const PredictorShape& shape, size_t max_samples, const data::OwnedEncoder* encoder)
      : shape_(shape), max_samples_(max_samples), encoder_(encoder) {}

  absl::StatusOr<Samples> Decode(absl::Span<const InferTensor> inputs) {
    CISTERN_RETURN_IF_ERROR(Collect(inputs));
    const InferTensor* const text = Take(std::string(kText));
    CISTERN_RETURN_IF_ERROR(text != nullptr ? DecodeText(*text)
                            : huge_ctr_     ? DecodeHugeCtr()
                                            : DecodeNamed());
    if (sample_num_ == 0) return absl::InvalidArgumentError("the request has no samples");
    samples_.weights_.resize(shape_.inputs.size());
    PredictRequest& request = samples_.request_;
    request.samples = sample_num_;
    request.dense = samples_.dense_;
    for (size_t i = 0; i < shape_.inputs.size(); ++i) {
      request.inputs.push_back({samples_.keys_[i], samples_.offsets_[i], samples_.weights_[i]});
    }
    return std::move(samples_);
  }

 private:
  // Sorts the inputs by name, and finds out which form they have.
  absl::Status Collect(absl::Span<const InferTensor> inputs) {
    bool named = false;
    for (const InferTensor& input : inputs) {
      (IsHugeCtrName(input.name) ? huge_ctr_ : named) = true;
      if (!inputs_.emplace(input.name, &input).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("duplicate input ", Quoted(input.name), "; send it once"));
      }
    }
    if (huge_ctr_ && named) {
      return absl::InvalidArgumentError(
          "the inputs mix HugeCTR's names (DES, CATCOLUMN, ROWINDEX) with names of this model; "
          "send one form only");
    }
    return absl::OkStatus();
  }

  // Removes the input from those not taken yet and returns it; null if absent.
  const InferTensor* Take(const std::string& name) {
    const auto found = inputs_.find(name);
    if (found == inputs_.end()) return nullptr;
    const InferTensor* tensor = found->second;
    inputs_.erase(found);
    return tensor;
  }
  absl::StatusOr<const InferTensor*> TakeRequired(const std::string& name) {
    const InferTensor* tensor = Take(name);
    if (tensor != nullptr) return tensor;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(name), " is missing; the model's metadata lists its inputs"));
  }
  absl::Status CheckNoneLeft() const {
    if (inputs_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("this model has no input ",
                                                   Quoted(inputs_.begin()->first),
                                                   "; the model's metadata lists its inputs"));
  }

  absl::Status SetSamples(uint64_t sample_num) {
    if (sample_num == 0) return absl::InvalidArgumentError("the request has no samples");
    if (sample_num > max_samples_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has ", sample_num, " samples, but this server accepts ",
                       max_samples_, " at a time; send several requests"));
    }
    sample_num_ = sample_num;
    return absl::OkStatus();
  }

  absl::Status DecodeText(const InferTensor& text) {
    if (encoder_ == nullptr) {
      return WithOptions(
          absl::InvalidArgumentError("this model was exported without a recipe, so it reads no "
                                     "text; send keys, or export it with its recipe"),
          {"export.serving.recipe"});
    }
    if (!inputs_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the request has the input 'text' and also ",
                                                     Quoted(inputs_.begin()->first),
                                                     "; send one form only"));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::vector<absl::string_view> texts, TextsOf(text));
    const bool lines = text.shape.size() == 1;
    size_t columns = lines ? 1 : data::FeatureColumns(encoder_->recipe()).size();
    const size_t whole_columns = lines ? 1 : data::WholeColumns(encoder_->recipe()).size();
    if (text.shape.size() == 2 && text.shape[1] == static_cast<int64_t>(whole_columns)) {
      columns = whole_columns;
    }
    if (!lines && (text.shape.size() != 2 || text.shape[1] != static_cast<int64_t>(columns))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input 'text' has shape ", ShapeText(text.shape), "; send [samples] or [", "samples,",
          columns, "]",
          whole_columns == columns
              ? ""
              : absl::StrCat(", or with whole lists and objects [samples,", whole_columns, "]")));
    }
    CISTERN_RETURN_IF_ERROR(SetSamples(texts.size() / columns));
    std::vector<uint32_t> slot_nums;
    for (const PredictorShape::Input& input : shape_.inputs) slot_nums.push_back(input.slot_num);
    data::SampleBlock block;
    CISTERN_RETURN_IF_ERROR(
        AddContext(lines ? data::EncodeLines(*encoder_, texts, slot_nums, &block)
                         : data::EncodeFields(*encoder_, texts, slot_nums, &block, columns),
                   "input 'text'"));
    samples_.dense_ = std::move(block.dense);
    for (data::SparseColumn& column : block.sparse) {
      samples_.keys_.push_back(std::move(column.keys));
      samples_.offsets_.push_back(std::move(column.offsets));
      samples_.weights_.push_back(std::move(column.weights));
    }
    return absl::OkStatus();
  }

  absl::Status DecodeNamed() {
    if (shape_.dense_dim > 0) {
      CISTERN_ASSIGN_OR_RETURN(const InferTensor* dense, TakeRequired(std::string(kDense)));
      CISTERN_RETURN_IF_ERROR(CheckDenseShape(*dense));
      CISTERN_ASSIGN_OR_RETURN(samples_.dense_, DenseOf(*dense));
      CISTERN_RETURN_IF_ERROR(SetSamples(samples_.dense_.size() / shape_.dense_dim));
    }
    for (const PredictorShape::Input& input : shape_.inputs) {
      CISTERN_ASSIGN_OR_RETURN(const InferTensor* keys,
                               TakeRequired(absl::StrCat(input.name, kKeys)));
      CISTERN_ASSIGN_OR_RETURN(const InferTensor* offsets,
                               TakeRequired(absl::StrCat(input.name, kOffsets)));
      CISTERN_RETURN_IF_ERROR(DecodeInput(input, *keys, *offsets));
      std::vector<float>& weights = samples_.weights_.emplace_back();
      if (!input.key_weights) continue;
      CISTERN_ASSIGN_OR_RETURN(const InferTensor* given,
                               TakeRequired(absl::StrCat(input.name, kWeights)));
      CISTERN_ASSIGN_OR_RETURN(weights, WeightsOf(*given, samples_.keys_.back().size()));
    }
    return CheckNoneLeft();
  }

  absl::Status CheckDenseShape(const InferTensor& dense) const {
    if (dense.shape.size() == 2 && dense.shape[1] == static_cast<int64_t>(shape_.dense_dim)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("input 'dense' has shape ",
                                                   ShapeText(dense.shape), "; send [samples,",
                                                   shape_.dense_dim, "]"));
  }

  absl::Status DecodeInput(const PredictorShape::Input& input, const InferTensor& keys,
                           const InferTensor& offsets) {
    CISTERN_RETURN_IF_ERROR(CheckType(offsets, "INT32"));
    CISTERN_RETURN_IF_ERROR(CheckSize(offsets));
    const uint64_t count = offsets.bytes().size() / sizeof(int32_t);
    if (sample_num_ == 0) {  // a model without dense features: the offsets say how many
      if (input.slot_num == 0 || count == 0 || (count - 1) % input.slot_num != 0) {
        return TooFew(offsets.name, count, absl::StrCat("samples * ", input.slot_num, " + 1"));
      }
      CISTERN_RETURN_IF_ERROR(SetSamples((count - 1) / input.slot_num));
    }
    if (count != sample_num_ * input.slot_num + 1) {
      return TooFew(offsets.name, count,
                    absl::StrCat(sample_num_ * input.slot_num + 1, " for ", sample_num_,
                                 " samples of ", input.slot_num, " slots"));
    }
    CISTERN_ASSIGN_OR_RETURN(std::vector<Key> key_values, KeysOf(keys));
    CISTERN_ASSIGN_OR_RETURN(
        std::vector<uint32_t> offset_values,
        OffsetsOf(offsets.name, Elements<int32_t>(offsets), key_values.size()));
    if (offset_values.back() != key_values.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", Quoted(keys.name), " has ", key_values.size(), " keys, but ",
          Quoted(offsets.name), " ends at ", offset_values.back(), "; these must be equal"));
    }
    samples_.keys_.push_back(std::move(key_values));
    samples_.offsets_.push_back(std::move(offset_values));
    return absl::OkStatus();
  }

  // The weights of as many keys.
  absl::StatusOr<std::vector<float>> WeightsOf(const InferTensor& weights, size_t keys) const {
    CISTERN_RETURN_IF_ERROR(CheckType(weights, "FP32"));
    CISTERN_RETURN_IF_ERROR(CheckSize(weights));
    std::vector<float> values = Elements<float>(weights);
    if (values.size() != keys) {
      return TooFew(weights.name, values.size(), absl::StrCat(keys, ", as many as keys"));
    }
    return values;
  }

  absl::Status DecodeHugeCtr() {
    for (const PredictorShape::Input& input : shape_.inputs) {
      if (!input.key_weights) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the keys of input ", Quoted(input.name),
                       " have weights, which HugeCTR's inputs have no place for; send the named "
                       "inputs, or text"));
    }
    CISTERN_ASSIGN_OR_RETURN(const InferTensor* columns, TakeRequired(std::string(kCatColumn)));
    CISTERN_ASSIGN_OR_RETURN(const InferTensor* rows, TakeRequired(std::string(kRowIndex)));
    CISTERN_RETURN_IF_ERROR(CheckType(*rows, "INT32"));
    CISTERN_RETURN_IF_ERROR(CheckSize(*rows));
    CISTERN_ASSIGN_OR_RETURN(const std::vector<Key> keys, KeysOf(*columns));
    CISTERN_RETURN_IF_ERROR(CountHugeCtr(*rows));
    CISTERN_RETURN_IF_ERROR(DecodeDes());
    CISTERN_RETURN_IF_ERROR(SplitOffsets(*rows, keys.size()));
    CISTERN_RETURN_IF_ERROR(SplitKeys(keys));
    return CheckNoneLeft();
  }

  // The number of samples follows from the number of offsets.
  absl::Status CountHugeCtr(const InferTensor& rows) {
    uint64_t slots = 0;
    for (const PredictorShape::Input& input : shape_.inputs) slots += input.slot_num;
    const uint64_t count = rows.bytes().size() / sizeof(int32_t), extra = shape_.inputs.size();
    if (slots == 0 || count < extra || (count - extra) % slots != 0) {
      return TooFew(rows.name, count, absl::StrCat("samples * ", slots, " + ", extra));
    }
    return SetSamples((count - extra) / slots);
  }

  absl::Status DecodeDes() {
    const InferTensor* des = Take(std::string(kDes));
    if (des == nullptr && shape_.dense_dim == 0) return absl::OkStatus();
    if (des == nullptr) return TakeRequired(std::string(kDes)).status();
    CISTERN_ASSIGN_OR_RETURN(samples_.dense_, DenseOf(*des));
    const uint64_t needed = sample_num_ * shape_.dense_dim;
    if (samples_.dense_.size() == needed) return absl::OkStatus();
    return TooFew(des->name, samples_.dense_.size(),
                  absl::StrCat(needed, " for the ", sample_num_, " samples of ROWINDEX"));
  }

  absl::Status SplitOffsets(const InferTensor& rows, uint64_t key_num) {
    const std::vector<int32_t> all = Elements<int32_t>(rows);
    absl::Span<const int32_t> left = all;
    uint64_t total = 0;
    for (const PredictorShape::Input& input : shape_.inputs) {
      const size_t count = sample_num_ * input.slot_num + 1;
      CISTERN_ASSIGN_OR_RETURN(std::vector<uint32_t> offsets,
                               OffsetsOf(rows.name, left.subspan(0, count), key_num));
      left.remove_prefix(count);
      total += offsets.back();
      samples_.offsets_.push_back(std::move(offsets));
    }
    if (total == key_num) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("input 'CATCOLUMN' has ", key_num,
                                                   " keys, but 'ROWINDEX' accounts for ", total,
                                                   "; these must be equal"));
  }

  // From keys by sample to keys by sparse input.
  absl::Status SplitKeys(absl::Span<const Key> keys) {
    const size_t input_num = shape_.inputs.size();
    samples_.keys_.resize(input_num);
    for (size_t i = 0; i < input_num; ++i) {
      samples_.keys_[i].reserve(samples_.offsets_[i].back());
    }
    for (size_t sample = 0; sample < sample_num_; ++sample) {
      for (size_t i = 0; i < input_num; ++i) {
        const size_t slots = shape_.inputs[i].slot_num;
        const uint32_t* offsets = samples_.offsets_[i].data() + sample * slots;
        const size_t count = offsets[slots] - offsets[0];
        samples_.keys_[i].insert(samples_.keys_[i].end(), keys.begin(), keys.begin() + count);
        keys.remove_prefix(count);
      }
    }
    return absl::OkStatus();
  }

  const PredictorShape& shape_;
  const size_t max_samples_;
  const data::OwnedEncoder* const encoder_;
  std::unordered_map<std::string, const InferTensor*> inputs_;  // not yet decoded
  bool huge_ctr_ = false;
  size_t sample_num_ = 0;
  Samples samples_;
};

absl::StatusOr<Samples> Samples::Decode(const PredictorShape& shape, size_t max_samples,
                                        absl::Span<const InferTensor> inputs,
                                        const data::OwnedEncoder* encoder) {
  return SampleDecoder(shape, max_samples, encoder).Decode(inputs);
}

size_t Samples::key_num() const {
  size_t count = 0;
  for (const std::vector<Key>& keys : keys_) count += keys.size();
  return count;
}

}  // namespace cistern::serve
