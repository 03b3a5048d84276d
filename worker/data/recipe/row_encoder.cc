#include "worker/data/recipe/row_encoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/shown_text.h"
#include "worker/data/format/hashed_key.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr float kUnknown = -1;  // label

// Moves a number to the nearer bound.
double Within(const Recipe::Dense& dense, double value) {
  if (dense.low) value = std::max(value, *dense.low);
  if (dense.high) value = std::min(value, *dense.high);
  return value;
}

// What is standardized: a number within its bounds, or its logarithm.
double Unscaled(const Recipe::Dense& dense, double number) {
  const double value = Within(dense, number);
  return dense.transform == DenseTransform::kLog1p ? std::log1p(std::max(0.0, value)) : value;
}

bool FitsFloat(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max();
}

absl::Status BeyondFloat(absl::string_view text) {
  return absl::OutOfRangeError(absl::StrCat("'", text.substr(0, 40), "' does not fit a float"));
}

// The text of an integer key: 1047.0 is 1047.
absl::string_view WithoutPoint(absl::string_view value, std::string* digits) {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  const bool has_point = absl::StrContains(text, '.') && IntegerDigits(text, digits);
  return has_point ? absl::string_view(*digits) : text;
}

absl::Status InColumn(const absl::Status& status, const std::string& column) {
  return AddContext(status, absl::StrCat("column '", column, "'"));
}

// The fields that a slot reads, in `work`.
absl::Span<const absl::string_view> FieldsOf(absl::Span<const absl::string_view> row,
                                             const std::vector<size_t>& places, EncoderWork* work) {
  work->fields.clear();
  for (const size_t place : places) work->fields.push_back(row[place]);
  return work->fields;
}

}  // namespace

RowEncoder::RowEncoder(Recipe recipe, const Vocabulary* vocabulary) : recipe_(std::move(recipe)) {
  for (const std::string& missing : recipe_.missing_values) {
    missing_texts_.insert(missing);
    missing_size_most_ = std::max(missing_size_most_, missing.size());
    blank_is_missing_ = blank_is_missing_ || missing == " ";
  }
  for (const Recipe::Label& label : recipe_.labels) classes_.emplace_back(label);
  for (const Recipe::Dense& dense : recipe_.dense) {
    dense_forms_.push_back(NumberFormOf(recipe_, dense.column));
  }
  std::string text;
  std::set<std::string> columns;
  for (const Recipe::Slot& planned : recipe_.slots) {
    Slot& slot = slots_.emplace_back();
    const std::string& name = planned.shares.empty() ? planned.column : planned.shares;
    slot.prefix = name + "=";
    slot.missing_key = HashedKey(planned.column + "=", "", &text);
    // Cannot equal the text of a value, which contains "=".
    slot.rare_key = HashedKey(planned.column, "<rare>", &text);
    if (vocabulary != nullptr) slot.known = &vocabulary->Of(name);
    for (const Recipe::Source& source : planned.cross) {
      slot.forms.push_back(source.bucket ? NumberFormOf(recipe_, source.column) : nullptr);
    }
    if (planned.cross.empty()) {
      slot.forms = {planned.bucket ? NumberFormOf(recipe_, planned.column) : nullptr};
    }
    slot.repeated = !columns.insert(planned.column).second;
    slot.weighted = planned.key_weights;
  }
}

SampleShape RowEncoder::shape() const {
  SampleShape shape;
  shape.weighted = !recipe_.weight.empty();
  shape.label_dim = static_cast<uint32_t>(recipe_.labels.size()) + (shape.weighted ? 1 : 0);
  shape.dense_dim = static_cast<uint32_t>(recipe_.dense.size());
  shape.slot_nums = {static_cast<uint32_t>(slots_.size())};
  if (HasKeyWeights(recipe_)) shape.key_weights = {true};
  return shape;
}

EncoderWork RowEncoder::NewWork() const {
  EncoderWork work;
  work.dense_missing.resize(recipe_.dense.size());
  work.dense_beyond.resize(recipe_.dense.size());
  work.slot_missing.resize(slots_.size());
  work.slot_rare.resize(slots_.size());
  return work;
}

absl::Status RowEncoder::Count(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                               EncoderWork* work, Vocabulary* vocabulary) const {
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].repeated) continue;
    const Recipe::Slot& slot = recipe_.slots[s];
    Vocabulary::Counts& counts =
        *vocabulary->Column(slot.shares.empty() ? slot.column : slot.shares);
    const absl::Status counted =
        ForEachKey(FieldsOf(fields, places.slots[s], work), s, work, [&](Key key, float) {
          uint32_t& count = counts[key];
          if (count + 1 != 0) ++count;
        });
    CISTERN_RETURN_IF_ERROR(InColumn(counted, recipe_.slots[s].column));
  }
  return absl::OkStatus();
}

absl::Status RowEncoder::Encode(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                                Labels labels, absl::Span<const uint32_t> slot_nums,
                                EncoderWork* work, SampleBlock* block) const {
  const size_t label_size = block->label.size(), dense_size = block->dense.size();
  absl::Status encoded = EncodeParts(fields, places, labels, slot_nums, work, block);
  if (encoded.ok()) {
    ++block->size;
    return encoded;
  }
  block->label.resize(label_size);
  block->dense.resize(dense_size);
  for (size_t input = 0; input < slot_nums.size(); ++input) {
    SparseColumn& sparse = block->sparse[input];
    sparse.offsets.resize(block->size * slot_nums[input] + 1);
    sparse.keys.resize(sparse.offsets.back());
    if (!sparse.weights.empty()) sparse.weights.resize(sparse.keys.size());
  }
  return encoded;
}

absl::Status RowEncoder::EncodeParts(absl::Span<const absl::string_view> fields,
                                     const RowPlaces& places, Labels labels,
                                     absl::Span<const uint32_t> slot_nums, EncoderWork* work,
                                     SampleBlock* block) const {
  for (size_t i = 0; i < recipe_.labels.size(); ++i) {
    const size_t place = places.labels[i];
    if (place == RowPlaces::kAbsent) {
      block->label.push_back(kUnknown);
      continue;
    }
    const absl::StatusOr<float> label = LabelOf(fields[place], i, labels);
    if (!label.ok()) return InColumn(label.status(), recipe_.labels[i].column);
    block->label.push_back(*label);
  }
  if (!recipe_.weight.empty()) {
    CISTERN_ASSIGN_OR_RETURN(const float weight, WeightOf(fields, places, labels));
    block->label.push_back(weight);
  }
  for (size_t i = 0; i < recipe_.dense.size(); ++i) {
    const absl::StatusOr<float> dense = DenseOf(fields[places.dense[i]], i, work);
    if (!dense.ok()) return InColumn(dense.status(), recipe_.dense[i].column);
    block->dense.push_back(*dense);
  }
  size_t slot = 0;
  for (size_t input = 0; input < slot_nums.size(); ++input) {
    SparseColumn& sparse = block->sparse[input];
    const size_t end = slot + slot_nums[input];
    const bool weighted = std::any_of(slots_.begin() + static_cast<ptrdiff_t>(slot),
                                      slots_.begin() + static_cast<ptrdiff_t>(end),
                                      [](const Slot& one) { return one.weighted; });
    for (; slot < end; ++slot) {
      const absl::Status appended =
          AppendSlot(FieldsOf(fields, places.slots[slot], work), slot, weighted, work, &sparse);
      if (!appended.ok()) return InColumn(appended, recipe_.slots[slot].column);
      sparse.offsets.push_back(static_cast<uint32_t>(sparse.keys.size()));
    }
  }
  return absl::OkStatus();
}

bool RowEncoder::IsMissing(absl::string_view field) const {
  if (field.empty()) return true;
  if (field.size() <= missing_size_most_ && missing_texts_.contains(field)) return true;
  return blank_is_missing_ && absl::ascii_isspace(field[0]) &&
         absl::StripAsciiWhitespace(field).empty();
}

bool RowEncoder::IsMissingValue(absl::string_view value, bool bucket) const {
  if (IsMissing(value)) return true;
  if (!bucket) return false;
  double number = 0;
  const NumberKind kind = ReadNumber(value, &number);
  return kind == NumberKind::kNone ? StandsForNoNumber(value) : kind != NumberKind::kFinite;
}

bool RowEncoder::IsNegative(absl::Span<const absl::string_view> fields,
                            const RowPlaces& places) const {
  const absl::StatusOr<float> label = LabelOf(fields[places.labels[0]], 0, Labels::kNeeded);
  return label.ok() && *label <= 0.5f;
}

absl::StatusOr<float> RowEncoder::LabelOf(absl::string_view field, size_t i, Labels labels) const {
  const Recipe::Label& label = recipe_.labels[i];
  // A task of several can be unknown, such as the purchase without a click.
  const bool may_be_unknown = labels == Labels::kOptional || recipe_.labels.size() > 1;
  if (IsMissing(field)) {
    if (may_be_unknown) return kUnknown;
    return absl::DataLossError("the label is missing");
  }
  if (!label.positive.empty()) {
    absl::StatusOr<float> value = classes_[i].Of(field);
    if (value.ok() || labels == Labels::kNeeded) return value;
    return WithMessage(value.status(),
                       absl::StrCat(value.status().message(),
                                    "; a prediction needs no label: it may be empty, or left out"));
  }
  double value = 0;
  const NumberKind kind = ReadNumber(field, &value);
  if (kind != NumberKind::kFinite) {
    if (may_be_unknown && IsUsuallyMissing(field)) return kUnknown;
    return WithOptions(absl::DataLossError(absl::StrCat(
                           NotANumber(field).message(),
                           ": for a label that is text, name the texts that count as 1")),
                       {"positive"});
  }
  if (label.threshold) {
    value = value > *label.threshold ? 1 : 0;
  } else if (value < 0 && !(value == kUnknown && recipe_.labels.size() > 1)) {
    return WithOptions(
        absl::OutOfRangeError(absl::StrCat(
            "the label is ", field, ", below 0: ",
            recipe_.labels.size() > 1
                ? "of several labels, one that is not known is -1 or empty"
                : "if it means a negative sample, a threshold of 0 makes labels 0 and 1; if "
                  "the label is not known, remove the row")),
        {"label_threshold"});
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  return static_cast<float>(value);
}

absl::StatusOr<std::optional<double>> RowEncoder::NumberOf(absl::string_view field,
                                                           size_t feature) const {
  std::string plain;
  const absl::string_view given = field;
  if (dense_forms_[feature] != nullptr) field = PlainField(field, *dense_forms_[feature], &plain);
  if (IsMissing(field)) return std::nullopt;
  double value = 0;
  switch (ReadNumber(field, &value)) {
    case NumberKind::kNone:
      if (StandsForNoNumber(field)) return std::nullopt;
      return absl::DataLossError(
          absl::StrCat(NotANumber(given).message(), ": write one, or leave the field empty"));
    case NumberKind::kInfinite:
    case NumberKind::kNan:
      return std::nullopt;
    case NumberKind::kFinite:
      break;
  }
  return value;
}

absl::StatusOr<std::optional<double>> RowEncoder::DenseNumber(absl::string_view field,
                                                              size_t feature) const {
  const Recipe::Dense& dense = recipe_.dense[feature];
  absl::StatusOr<std::optional<double>> number = NumberOf(field, feature);
  if (!number.ok()) return InColumn(number.status(), dense.column);
  if (number->has_value()) number = Unscaled(dense, **number);
  return number;
}

absl::StatusOr<float> RowEncoder::DenseOf(absl::string_view field, size_t feature,
                                          EncoderWork* work) const {
  const Recipe::Dense& dense = recipe_.dense[feature];
  CISTERN_ASSIGN_OR_RETURN(const std::optional<double> number, NumberOf(field, feature));
  double value = dense.missing;  // not transformed
  if (number) {
    if (Within(dense, *number) != *number) ++work->dense_beyond[feature];
    value = (Unscaled(dense, *number) - dense.mean) / dense.deviation;
  } else {
    ++work->dense_missing[feature];
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  return static_cast<float>(value);
}

absl::Status RowEncoder::AppendSlot(absl::Span<const absl::string_view> fields, size_t slot,
                                    bool weighted, EncoderWork* work, SparseColumn* column) const {
  const Slot& made = slots_[slot];
  bool any = false;
  const auto append = [&](Key key, float weight) {
    column->keys.push_back(key);
    if (weighted) column->weights.push_back(weight);
  };
  CISTERN_RETURN_IF_ERROR(ForEachKey(fields, slot, work, [&](Key key, float weight) {
    any = true;
    if (made.known == nullptr || made.known->contains(key)) return append(key, weight);
    ++work->slot_rare[slot];
    if (recipe_.rare == StandIn::kKey) append(made.rare_key, weight);
  }));
  if (any) return absl::OkStatus();
  ++work->slot_missing[slot];
  if (recipe_.missing == StandIn::kKey) append(made.missing_key, 1.0f);
  return absl::OkStatus();
}

template <typename Visit>
absl::Status RowEncoder::ForEachKey(absl::Span<const absl::string_view> fields, size_t slot,
                                    EncoderWork* work, const Visit& visit) const {
  if (!recipe_.slots[slot].cross.empty()) return ForEachCrossKey(fields, slot, work, visit);
  const Recipe::Slot& source = recipe_.slots[slot];
  if (source.key_weights) return ForEachWeightedKey(fields, slot, work, visit);
  const NumberForm* const form = slots_[slot].forms[0];
  std::string plain;
  const absl::string_view field =
      form == nullptr ? fields[0] : PlainField(fields[0], *form, &plain);
  if (IsMissing(field)) return absl::OkStatus();
  return ForEachValue(field, source, [&](absl::string_view value) -> absl::Status {
    if (IsMissingValue(value, source.bucket)) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(value, slot, work));
    visit(key, 1.0f);
    return absl::OkStatus();
  });
}

template <typename Visit>
absl::Status RowEncoder::ForEachWeightedKey(absl::Span<const absl::string_view> fields, size_t slot,
                                            EncoderWork* work, const Visit& visit) const {
  const Recipe::Slot& source = recipe_.slots[slot];
  const bool paired = fields.size() > 1;
  const auto part = [&](absl::string_view field) {
    if (IsMissing(field)) return absl::string_view();
    return source.list ? InsideBrackets(field) : field;
  };
  absl::string_view values = part(fields[0]), weights = paired ? part(fields[1]) : "";
  size_t value_num = 0, weight_num = 0;
  while (!values.empty() || !weights.empty()) {
    if (values.empty() || (paired && weights.empty())) {  // the counts differ: how many are there
      for (; !values.empty(); ++value_num) TakeValue(*source.separator, source.list, &values);
      for (; !weights.empty(); ++weight_num) TakeValue(*source.separator, source.list, &weights);
      return absl::DataLossError(absl::StrCat(value_num, " values, but column '",
                                              source.weight_column, "' has ", weight_num,
                                              " weights: give each value a weight"));
    }
    ++value_num;
    absl::string_view value = TakeValue(*source.separator, source.list, &values);
    double weight = 1;
    if (paired) {
      ++weight_num;
      const absl::string_view text =
          WithoutQuotes(TakeValue(*source.separator, source.list, &weights));
      CISTERN_RETURN_IF_ERROR(
          AddContext(ReadKeyWeight(text, &weight), absl::StrCat("weight ", weight_num)));
    } else if (source.weights) {
      CISTERN_RETURN_IF_ERROR(TakeKeyWeight(source.weight_mark, &value, &weight));
    }
    if (source.list) value = WithoutQuotes(value);
    if (weight == 0 || IsMissingValue(value, source.bucket)) continue;
    CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(value, slot, work));
    visit(key, static_cast<float>(weight));
  }
  return absl::OkStatus();
}

template <typename Visit>
absl::Status RowEncoder::ForEachCrossKey(absl::Span<const absl::string_view> fields, size_t slot,
                                         EncoderWork* work, const Visit& visit) const {
  const std::vector<Recipe::Source>& sources = recipe_.slots[slot].cross;
  work->values.resize(sources.size());
  bool missing = false;
  for (size_t i = 0; i < sources.size(); ++i) {
    work->values[i].clear();
    CISTERN_RETURN_IF_ERROR(
        InColumn(AppendValues(fields[i], sources[i], slots_[slot].forms[i], &work->values[i]),
                 sources[i].column));
    missing = missing || work->values[i].empty();
  }
  if (missing) return absl::OkStatus();
  size_t combinations = 1;
  for (const std::vector<std::string>& texts : work->values) {
    combinations *= texts.size();
    if (combinations > kMaxCombinations) {
      return absl::OutOfRangeError(
          absl::StrCat("the cross has at least ", combinations,
                       " combinations of values in this row; the limit is ", kMaxCombinations,
                       ": cross fewer columns with several values"));
    }
  }
  std::vector<absl::string_view> values(sources.size());
  for (size_t combination = 0; combination < combinations; ++combination) {
    size_t rest = combination;  // the last column varies fastest
    for (size_t i = sources.size(); i-- > 0; rest /= work->values[i].size()) {
      values[i] = work->values[i][rest % work->values[i].size()];
    }
    visit(HashedKey(slots_[slot].prefix, CrossText(values), &work->text), 1.0f);
  }
  return absl::OkStatus();
}

absl::Status RowEncoder::AppendValues(absl::string_view field, const Recipe::Source& source,
                                      const NumberForm* form,
                                      std::vector<std::string>* values) const {
  std::string plain;
  if (form != nullptr) field = PlainField(field, *form, &plain);
  if (IsMissing(field)) return absl::OkStatus();
  return ForEachValue(field, source, [&](absl::string_view value) -> absl::Status {
    if (IsMissingValue(value, source.bucket)) return absl::OkStatus();
    std::string& text = values->emplace_back(value);
    if (source.bucket) return BucketText(value, &text);
    if (source.integer) IntegerCode(value, &text);
    return absl::OkStatus();
  });
}

bool RowEncoder::Knows(absl::string_view value, size_t slot, EncoderWork* work) const {
  if (slots_[slot].known == nullptr) return true;
  const absl::StatusOr<Key> key = KeyOf(value, slot, work);
  return key.ok() && slots_[slot].known->contains(*key);
}

absl::StatusOr<Key> RowEncoder::KeyOf(absl::string_view value, size_t slot,
                                      EncoderWork* work) const {
  if (recipe_.keys == KeyMode::kRaw) return RawKey(value);
  if (recipe_.keys == KeyMode::kSigned) return SignedKey(value);
  const Recipe::Slot& source = recipe_.slots[slot];
  if (!source.bucket) {
    if (source.integer && IntegerCode(value, &work->digits)) value = work->digits;
    return HashedKey(slots_[slot].prefix, value, &work->text);
  }
  CISTERN_RETURN_IF_ERROR(BucketText(value, &work->bucket));
  return HashedKey(slots_[slot].prefix, work->bucket, &work->text);
}

absl::Status RowEncoder::BeyondKeys(const std::string& what) const {
  if (recipe_.key_bits == 64)
    return WithOptions(absl::OutOfRangeError(what + ": hash the keys"), {"keys=hash"});
  return WithOptions(absl::OutOfRangeError(what + ": use 64-bit keys, or hash the keys"),
                     {"key_bits=64", "keys=hash"});
}

absl::StatusOr<Key> RowEncoder::RawKey(absl::string_view value) const {
  const Key reserved = recipe_.key_bits == 64 ? kReservedKey64 : kReservedKey32;
  std::string digits;
  const absl::string_view text = WithoutPoint(value, &digits);
  const char* const end = text.data() + text.size();
  Key key = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, key);
  if ((error != std::errc() && error != std::errc::result_out_of_range) || stop != end) {
    return WithOptions(
        absl::DataLossError(absl::StrCat(
            "'", ShownText(value, 40), "' is not an integer of 0 or more: text needs hashed keys")),
        {"keys=hash"});
  }
  if (error == std::errc() && key < reserved) return key;
  return BeyondKeys(absl::StrCat("key ", text.substr(0, 40), " is not in [0, ", reserved - 1, "]"));
}

absl::StatusOr<Key> RowEncoder::SignedKey(absl::string_view value) const {
  std::string digits;
  const absl::string_view text = WithoutPoint(value, &digits);
  const char* const end = text.data() + text.size();
  int64_t x = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (error == std::errc::invalid_argument || stop != end) {
    return WithOptions(
        absl::DataLossError(
            absl::StrCat("'", ShownText(value, 40), "' is not an integer: text needs hashed keys")),
        {"keys=hash"});
  }
  const uint64_t bits = static_cast<uint64_t>(x);
  const Key key = x < 0 ? ~(bits << 1) : bits << 1;
  const bool fits = recipe_.key_bits == 64 ? key < kReservedKey64 : key < kReservedKey32;
  if (error == std::errc() && fits) return key;
  return BeyondKeys(absl::StrCat("'", text.substr(0, 40), "' is beyond the range of a signed ",
                                 recipe_.key_bits, "-bit key"));
}

Key RowEncoder::HashedKey(absl::string_view prefix, absl::string_view value,
                          std::string* text) const {
  text->assign(prefix.data(), prefix.size());
  text->append(value.data(), value.size());
  return HashedKeyOf(*text, recipe_.key_bits == 64);
}

}  // namespace cistern::data
