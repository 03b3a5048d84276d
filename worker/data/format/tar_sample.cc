#include "worker/data/format/tar_sample.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "worker/data/format/hashed_key.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/norm_format.h"

namespace cistern::data {

struct TarSampleReader::Json {
  const nlohmann::json& value;
};

namespace {

using Value = nlohmann::json;

absl::Status Wrong(const std::string& field, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("field '", field, "' ", what));
}

absl::StatusOr<const Value*> FieldOf(const Value& sample, const std::string& name) {
  const auto it = sample.find(name);
  if (it == sample.end()) return Wrong(name, "is missing");
  return &*it;
}

bool IsEmpty(const Value& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

std::optional<double> NumberOf(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(text), &number)) return std::nullopt;
  return number;
}

// A finite float from a number, or from text that is one.
absl::StatusOr<float> FloatOf(const Value& value, const std::string& field) {
  std::optional<double> number;
  if (value.is_number()) number = value.get<double>();
  if (value.is_boolean()) number = value.get<bool>() ? 1 : 0;
  if (value.is_string()) number = NumberOf(value.get_ref<const std::string&>());
  if (!number) return Wrong(field, absl::StrCat("is ", value.type_name(), ", not a number"));
  const float x = static_cast<float>(*number);
  if (std::isfinite(x)) return x;
  return Wrong(field, "is not a finite float: fill or drop such samples");
}

absl::StatusOr<float> DenseOf(const Value& value, const std::string& field) {
  if (IsEmpty(value)) return 0.0f;
  return FloatOf(value, field);
}

// The field names[i], or by default entry i of the array `field` of `count` entries.
absl::StatusOr<const Value*> SlotFieldOf(const Value& sample, const std::vector<std::string>& names,
                                         const std::string& field, size_t i, size_t count) {
  if (!names.empty()) return FieldOf(sample, names[i]);
  CISTERN_ASSIGN_OR_RETURN(const Value* entries, FieldOf(sample, field));
  if (entries->is_array() && entries->size() == count) return &(*entries)[i];
  return Wrong(field, absl::StrCat("is not an array of ", count, " slots"));
}

// The tokens or weights of an entry, which may be one alone.
absl::Span<const Value> PartsOf(const Value& entry) {
  if (!entry.is_array()) return absl::MakeConstSpan(&entry, 1);
  return entry.get_ref<const Value::array_t&>();
}

// Appends the bits of the weights of a slot's tokens.
absl::Status AppendSlotWeights(const Value& tokens, const Value& weights, const std::string& field,
                               std::vector<Key>* bits) {
  if (weights.is_null()) return absl::OkStatus();
  const absl::Span<const Value> of = PartsOf(tokens), parts = PartsOf(weights);
  if (of.size() != parts.size()) {
    return Wrong(field, absl::StrCat("holds ", parts.size(), " weights for ", of.size(),
                                     " tokens: give one number for each, or null if all are 1"));
  }
  for (size_t i = 0; i < of.size(); ++i) {
    CISTERN_ASSIGN_OR_RETURN(const float weight, FloatOf(parts[i], field));
    if (!IsEmpty(of[i])) bits->push_back(BitsOf(weight));
  }
  return absl::OkStatus();
}

}  // namespace

TarSampleReader::TarSampleReader(const TarSampleOptions& options) : options_(options) {
  const std::vector<std::string>& names = options_.columns.slots;
  const uint64_t slots = KeySlots(options_.shape);
  for (uint64_t i = 0; i < slots; ++i) {
    prefixes_.push_back(absl::StrCat(names.empty() ? absl::StrCat(i) : names[i], "="));
  }
}

absl::Status TarSampleReader::Append(absl::string_view json, const std::string* cls,
                                     SampleBlock* block) {
  const Value value = Value::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) {
    return absl::DataLossError(value.is_discarded() ? "its .json is not JSON"
                                                    : "its .json is not a JSON object");
  }
  const size_t size = block->size;
  const Json sample{value};
  absl::Status status = AppendLabel(sample, cls, block);
  if (status.ok()) status = AppendDense(sample, block);
  if (status.ok()) status = AppendSlots(sample, block);
  if (status.ok()) status = AppendWeights(sample, block);
  if (status.ok()) {
    ++block->size;
    if (options_.counts != nullptr) options_.counts->decoded_bytes += json.size();
  } else {
    CutBack(size, block);
  }
  return status;
}

absl::Status TarSampleReader::AppendLabel(const Json& sample, const std::string* cls,
                                          SampleBlock* block) const {
  const std::vector<std::string>& names = options_.columns.label;
  const uint32_t dim = options_.shape.label_dim;
  if (!names.empty()) {
    for (const std::string& name : names) {
      CISTERN_ASSIGN_OR_RETURN(const Value* field, FieldOf(sample.value, name));
      CISTERN_ASSIGN_OR_RETURN(const float x, FloatOf(*field, name));
      block->label.push_back(x);
    }
    return absl::OkStatus();
  }
  const auto it = sample.value.find("label");
  if (it == sample.value.end() && cls != nullptr && dim == 1) {
    CISTERN_ASSIGN_OR_RETURN(const float x, FloatOf(Value(*cls), ".cls"));
    block->label.push_back(x);
    return absl::OkStatus();
  }
  if (it == sample.value.end()) return Wrong("label", "is missing, and so is a .cls");
  const Value labels = it->is_array() ? *it : Value::array({*it});
  if (labels.size() != dim) {
    return Wrong("label", absl::StrCat("holds ", labels.size(), " labels, but label_dim is ", dim));
  }
  for (const Value& label : labels) {
    CISTERN_ASSIGN_OR_RETURN(const float x, FloatOf(label, "label"));
    block->label.push_back(x);
  }
  return absl::OkStatus();
}

absl::Status TarSampleReader::AppendDense(const Json& sample, SampleBlock* block) const {
  const uint32_t dim = options_.shape.dense_dim;
  if (dim == 0) return absl::OkStatus();
  const std::vector<std::string>& names = options_.columns.dense;
  for (const std::string& name : names) {
    CISTERN_ASSIGN_OR_RETURN(const Value* field, FieldOf(sample.value, name));
    CISTERN_ASSIGN_OR_RETURN(const float x, DenseOf(*field, name));
    block->dense.push_back(x);
  }
  if (!names.empty()) return absl::OkStatus();
  CISTERN_ASSIGN_OR_RETURN(const Value* dense, FieldOf(sample.value, "dense"));
  if (!dense->is_array() || dense->size() != dim) {
    return Wrong("dense", absl::StrCat("is not an array of dense_dim ", dim, " numbers"));
  }
  for (const Value& value : *dense) {
    CISTERN_ASSIGN_OR_RETURN(const float x, DenseOf(value, "dense"));
    block->dense.push_back(x);
  }
  return absl::OkStatus();
}

absl::Status TarSampleReader::AppendSlots(const Json& sample, SampleBlock* block) {
  size_t slot_of_all = 0;
  for (size_t input = 0; slot_of_all < prefixes_.size(); ++input) {
    SparseColumn& column = block->sparse[input];
    const size_t before = column.keys.size();
    const uint64_t most =
        input < options_.shape.max_keys.size() ? options_.shape.max_keys[input] : 0;
    for (uint32_t slot = 0; slot < options_.shape.slot_nums[input]; ++slot, ++slot_of_all) {
      CISTERN_ASSIGN_OR_RETURN(const Value* entry,
                               SlotFieldOf(sample.value, options_.columns.slots, "slots",
                                           slot_of_all, prefixes_.size()));
      CISTERN_RETURN_IF_ERROR(AppendSlot({*entry}, input, slot, slot_of_all, &column.keys));
      if (column.keys.size() > std::numeric_limits<uint32_t>::max()) {
        return absl::ResourceExhaustedError("a block holds more than 2^32 keys");
      }
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
    if (most == 0 || column.keys.size() - before <= most) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "input ", input, " has ", column.keys.size() - before, " keys, but a sample may hold ",
        most, ": raise sparse[", input, "].max_feature_num_per_sample"));
  }
  return absl::OkStatus();
}

absl::Status TarSampleReader::AppendWeights(const Json& sample, SampleBlock* block) const {
  const std::vector<std::string>& names = options_.columns.weights;
  const SampleShape& shape = options_.shape;
  const size_t count = WeightSlots(shape);
  size_t to = shape.key_weights.size(), slot_of_all = 0, weighted = 0;
  for (size_t input = 0; input < shape.key_weights.size(); ++input) {
    if (!shape.key_weights[input]) {
      slot_of_all += shape.slot_nums[input];
      continue;
    }
    SparseColumn& column = block->sparse[to++];
    for (uint32_t slot = 0; slot < shape.slot_nums[input]; ++slot, ++slot_of_all, ++weighted) {
      CISTERN_ASSIGN_OR_RETURN(const Value* tokens,
                               SlotFieldOf(sample.value, options_.columns.slots, "slots",
                                           slot_of_all, prefixes_.size()));
      CISTERN_ASSIGN_OR_RETURN(const Value* weights,
                               SlotFieldOf(sample.value, names, "weights", weighted, count));
      CISTERN_RETURN_IF_ERROR(AppendSlotWeights(
          *tokens, *weights, names.empty() ? "weights" : names[weighted], &column.keys));
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
  }
  return absl::OkStatus();
}

absl::Status TarSampleReader::AppendSlot(const Json& entry, size_t input, size_t slot,
                                         size_t slot_of_all, std::vector<Key>* keys) {
  if (!entry.value.is_array()) return AppendToken(entry, input, slot, slot_of_all, keys);
  for (const Value& token : entry.value) {
    CISTERN_RETURN_IF_ERROR(AppendToken({token}, input, slot, slot_of_all, keys));
  }
  return absl::OkStatus();
}

absl::Status TarSampleReader::AppendToken(const Json& token, size_t input, size_t slot,
                                          size_t slot_of_all, std::vector<Key>* keys) {
  if (IsEmpty(token.value)) return absl::OkStatus();
  const auto where = [&] { return absl::StrCat("slot ", slot, " of input ", input); };
  if (token.value.is_string()) {
    text_ = prefixes_[slot_of_all];
    text_ += token.value.get_ref<const std::string&>();
    keys->push_back(HashedKeyOf(text_, options_.wide_keys));
    return absl::OkStatus();
  }
  if (!token.value.is_number_integer()) {
    return absl::DataLossError(absl::StrCat(where(), " holds a ", token.value.type_name(),
                                            "; a token is text or a whole number"));
  }
  const Key reserved = options_.wide_keys ? kReservedKey64 : kReservedKey32;
  const bool bounded = input < options_.slot_starts.size() && !options_.slot_starts[input].empty();
  const Key least = bounded ? options_.slot_starts[input][slot] : 0;
  const Key end = bounded ? std::min(options_.slot_starts[input][slot + 1], reserved) : reserved;
  if (token.value.is_number_unsigned()) {
    const Key key = token.value.get<uint64_t>();
    if (key >= least && key < end) {
      keys->push_back(key);
      return absl::OkStatus();
    }
  }
  return absl::OutOfRangeError(
      absl::StrCat(where(), ": key ", token.value.dump(), " is outside [", least, ", ", end, ")",
                   bounded              ? ": raise slot_size_array of its one-hot embedding"
                   : options_.wide_keys ? ""
                                        : ": larger keys need solver.input_key_type I64"));
}

void TarSampleReader::CutBack(size_t size, SampleBlock* block) const {
  block->label.resize(size * options_.shape.label_dim);
  block->dense.resize(size * options_.shape.dense_dim);
  for (size_t i = 0; i < block->sparse.size(); ++i) {
    SparseColumn& column = block->sparse[i];
    column.offsets.resize(size * options_.shape.slot_nums[i] + 1);
    column.keys.resize(column.offsets.back());
  }
}

bool SplitMemberName(absl::string_view name, absl::string_view* key, absl::string_view* extension) {
  const size_t slash = name.rfind('/');
  const size_t begin = slash == absl::string_view::npos ? 0 : slash + 1;
  const absl::string_view last = name.substr(begin);
  if (last.size() >= 4 && absl::StartsWith(last, "__") && absl::EndsWith(last, "__")) return false;
  const size_t dot = last.find('.');
  if (dot == absl::string_view::npos || dot == 0) return false;
  *key = name.substr(0, begin + dot);
  *extension = last.substr(dot + 1);
  return true;
}

}  // namespace cistern::data
