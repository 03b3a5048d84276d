#include "worker/data/recipe/row_encoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/data/format/hashed_key.h"

namespace cistern {
namespace {

// Parses all of `text`, except for surrounding whitespace, as a number. A number outside the range
// of a double becomes 0 or infinity.
bool ParseNumber(absl::string_view text, double* value) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop != end) return false;
  if (error == std::errc::result_out_of_range) return absl::SimpleAtod(text, value);
  return error == std::errc() && std::isfinite(*value);
}

absl::Status NotANumber(absl::string_view text) {
  return absl::DataLossError(
      absl::StrCat("'", absl::CHexEscape(text.substr(0, 40)), "' is not a number"));
}

bool FitsFloat(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max();
}

absl::Status BeyondFloat(absl::string_view text) {
  return absl::OutOfRangeError(absl::StrCat("'", text.substr(0, 40), "' does not fit a float"));
}

// The bucket of a count, as in the winning entry of Criteo's contest: finer for small counts.
absl::Status BucketText(absl::string_view value, std::string* text) {
  double x = 0;
  if (!ParseNumber(value, &x)) return NotANumber(value);
  if (std::abs(x) > 1e15) {
    return absl::OutOfRangeError(
        absl::StrCat("'", value.substr(0, 40), "' is beyond 1e15, the last bucket"));
  }
  const bool large = x > 2;
  const double bucket = large ? std::log(x) * std::log(x) : x;
  *text = absl::StrCat(large ? "b" : "", static_cast<int64_t>(std::floor(bucket)));
  return absl::OkStatus();
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
  std::string text;
  std::set<std::string> columns;
  for (const Recipe::Slot& planned : recipe_.slots) {
    Slot& slot = slots_.emplace_back();
    slot.prefix = planned.column + "=";
    slot.missing_key = HashedKey(slot.prefix, "", &text);
    // Cannot equal the text of a value, which contains "=".
    slot.rare_key = HashedKey(planned.column, "<rare>", &text);
    if (vocabulary != nullptr) slot.known = &vocabulary->Of(planned.column);
    slot.repeated = !columns.insert(planned.column).second;
  }
}

SampleShape RowEncoder::shape() const {
  SampleShape shape;
  shape.label_dim = static_cast<uint32_t>(recipe_.labels.size());
  shape.dense_dim = static_cast<uint32_t>(recipe_.dense.size());
  shape.slot_nums = {static_cast<uint32_t>(slots_.size())};
  return shape;
}

EncoderWork RowEncoder::NewWork() const {
  EncoderWork work;
  work.dense_missing.resize(recipe_.dense.size());
  work.slot_missing.resize(slots_.size());
  work.slot_rare.resize(slots_.size());
  return work;
}

absl::Status RowEncoder::Count(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                               EncoderWork* work, Vocabulary* vocabulary) const {
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].repeated) continue;
    Vocabulary::Counts& counts = *vocabulary->Column(recipe_.slots[s].column);
    const absl::Status counted =
        ForEachKey(FieldsOf(fields, places.slots[s], work), s, work, [&](Key key) {
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
  constexpr float kUnknown = -1;
  for (size_t i = 0; i < recipe_.labels.size(); ++i) {
    const size_t place = places.labels[i];
    if (place == RowPlaces::kAbsent || (labels == Labels::kOptional && IsMissing(fields[place]))) {
      block->label.push_back(kUnknown);
      continue;
    }
    const absl::StatusOr<float> label = LabelOf(fields[place], recipe_.labels[i]);
    if (!label.ok()) return InColumn(label.status(), recipe_.labels[i].column);
    block->label.push_back(*label);
  }
  for (size_t i = 0; i < recipe_.dense.size(); ++i) {
    const absl::StatusOr<float> dense = DenseOf(fields[places.dense[i]], i, work);
    if (!dense.ok()) return InColumn(dense.status(), recipe_.dense[i].column);
    block->dense.push_back(*dense);
  }
  size_t slot = 0;
  for (size_t input = 0; input < slot_nums.size(); ++input) {
    SparseColumn& sparse = block->sparse[input];
    for (const size_t end = slot + slot_nums[input]; slot < end; ++slot) {
      const absl::Status appended =
          AppendSlot(FieldsOf(fields, places.slots[slot], work), slot, work, &sparse.keys);
      if (!appended.ok()) return InColumn(appended, recipe_.slots[slot].column);
      sparse.offsets.push_back(static_cast<uint32_t>(sparse.keys.size()));
    }
  }
  ++block->size;
  return absl::OkStatus();
}

bool RowEncoder::IsMissing(absl::string_view field) const {
  if (field.empty()) return true;
  const auto& texts = recipe_.missing_values;
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return field == text; });
}

absl::StatusOr<float> RowEncoder::LabelOf(absl::string_view field,
                                          const Recipe::Label& label) const {
  if (IsMissing(field)) return absl::DataLossError("the label is missing");
  if (!label.positive.empty()) {
    const auto& texts = label.positive;
    return std::find(texts.begin(), texts.end(), field) == texts.end() ? 0.0f : 1.0f;
  }
  double value = 0;
  if (!ParseNumber(field, &value)) {
    return absl::DataLossError(absl::StrCat(NotANumber(field).message(),
                                            ": for a label that is text, --positive names the "
                                            "texts that count as 1"));
  }
  if (label.threshold) {
    value = value > *label.threshold ? 1 : 0;
  } else if (value < 0) {
    return absl::OutOfRangeError(absl::StrCat(
        "the label is ", field, ", below 0: --label-threshold=0 makes labels 0 and 1"));
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  return static_cast<float>(value);
}

absl::StatusOr<std::optional<double>> RowEncoder::DenseNumber(absl::string_view field,
                                                              size_t feature) const {
  if (IsMissing(field)) return std::nullopt;
  double value = 0;
  if (!ParseNumber(field, &value)) {
    return InColumn(NotANumber(field), recipe_.dense[feature].column);
  }
  return value;
}

absl::StatusOr<float> RowEncoder::DenseOf(absl::string_view field, size_t feature,
                                          EncoderWork* work) const {
  const Recipe::Dense& dense = recipe_.dense[feature];
  double value = dense.missing;
  if (IsMissing(field)) {
    ++work->dense_missing[feature];
  } else if (!ParseNumber(field, &value)) {
    return NotANumber(field);
  } else if (dense.transform == DenseTransform::kLog1p) {
    value = std::log1p(std::max(0.0, value));
  } else if (dense.transform == DenseTransform::kStandardize) {
    value = (value - dense.mean) / dense.deviation;
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  return static_cast<float>(value);
}

absl::Status RowEncoder::AppendSlot(absl::Span<const absl::string_view> fields, size_t slot,
                                    EncoderWork* work, std::vector<Key>* keys) const {
  const Slot& made = slots_[slot];
  bool any = false;
  CISTERN_RETURN_IF_ERROR(ForEachKey(fields, slot, work, [&](Key key) {
    any = true;
    if (made.known == nullptr || made.known->contains(key)) {
      keys->push_back(key);
      return;
    }
    ++work->slot_rare[slot];
    if (recipe_.rare == StandIn::kKey) keys->push_back(made.rare_key);
  }));
  if (any) return absl::OkStatus();
  ++work->slot_missing[slot];
  if (recipe_.missing == StandIn::kKey) keys->push_back(made.missing_key);
  return absl::OkStatus();
}

template <typename Visit>
absl::Status RowEncoder::ForEachKey(absl::Span<const absl::string_view> fields, size_t slot,
                                    EncoderWork* work, const Visit& visit) const {
  if (!recipe_.slots[slot].cross.empty()) return ForEachCrossKey(fields, slot, work, visit);
  absl::string_view field = fields[0];
  if (IsMissing(field)) return absl::OkStatus();
  const std::optional<char> separator = recipe_.slots[slot].separator;
  if (!separator) {
    CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(field, slot, work));
    visit(key);
    return absl::OkStatus();
  }
  while (!field.empty()) {
    const size_t end = std::min(field.find(*separator), field.size());
    const absl::string_view value = field.substr(0, end);
    if (!IsMissing(value)) {
      CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(value, slot, work));
      visit(key);
    }
    field.remove_prefix(std::min(end + 1, field.size()));
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
        InColumn(AppendValues(fields[i], sources[i], &work->values[i]), sources[i].column));
    missing = missing || work->values[i].empty();
  }
  if (missing) return absl::OkStatus();
  size_t combinations = 1;
  for (const std::vector<std::string>& texts : work->values) {
    combinations *= texts.size();
    if (combinations > kMostCombinations) {
      return absl::OutOfRangeError(
          absl::StrCat("the cross has at least ", combinations,
                       " combinations of values in this row; the limit is ", kMostCombinations,
                       ": cross fewer columns with several values"));
    }
  }
  std::vector<absl::string_view> values(sources.size());
  for (size_t combination = 0; combination < combinations; ++combination) {
    size_t rest = combination;  // the last column varies fastest
    for (size_t i = sources.size(); i-- > 0; rest /= work->values[i].size()) {
      values[i] = work->values[i][rest % work->values[i].size()];
    }
    visit(HashedKey(slots_[slot].prefix, CrossText(values), &work->text));
  }
  return absl::OkStatus();
}

absl::Status RowEncoder::AppendValues(absl::string_view field, const Recipe::Source& source,
                                      std::vector<std::string>* values) const {
  if (IsMissing(field)) return absl::OkStatus();
  std::vector<absl::string_view> texts = {field};
  if (source.separator) texts = absl::StrSplit(field, *source.separator);
  for (const absl::string_view text : texts) {
    if (IsMissing(text)) continue;
    values->emplace_back(text);
    if (source.bucket) CISTERN_RETURN_IF_ERROR(BucketText(text, &values->back()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Key> RowEncoder::KeyOf(absl::string_view value, size_t slot,
                                      EncoderWork* work) const {
  if (recipe_.keys == KeyMode::kRaw) return RawKey(value);
  if (recipe_.keys == KeyMode::kSigned) return SignedKey(value);
  if (!recipe_.slots[slot].bucket) return HashedKey(slots_[slot].prefix, value, &work->text);
  CISTERN_RETURN_IF_ERROR(BucketText(value, &work->bucket));
  return HashedKey(slots_[slot].prefix, work->bucket, &work->text);
}

absl::StatusOr<Key> RowEncoder::RawKey(absl::string_view value) const {
  const Key reserved = recipe_.key_bits == 64 ? kReservedKey64 : kReservedKey32;
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  const char* const end = text.data() + text.size();
  Key key = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, key);
  if ((error != std::errc() && error != std::errc::result_out_of_range) || stop != end) {
    return absl::DataLossError(absl::StrCat("'", absl::CHexEscape(value.substr(0, 40)),
                                            "' is not an integer of 0 or more: for text "
                                            "use --keys=hash"));
  }
  if (error == std::errc() && key < reserved) return key;
  return absl::OutOfRangeError(
      absl::StrCat("key ", text.substr(0, 40), " is not in [0, ", reserved - 1, "]: use ",
                   recipe_.key_bits == 32 ? "--key-bits=64 or " : "", "--keys=hash"));
}

absl::StatusOr<Key> RowEncoder::SignedKey(absl::string_view value) const {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  const char* const end = text.data() + text.size();
  int64_t x = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (error == std::errc::invalid_argument || stop != end) {
    return absl::DataLossError(absl::StrCat("'", absl::CHexEscape(value.substr(0, 40)),
                                            "' is not an integer: for text use --keys=hash"));
  }
  const uint64_t bits = static_cast<uint64_t>(x);
  const Key key = x < 0 ? ~(bits << 1) : bits << 1;
  const bool fits = recipe_.key_bits == 64 ? key < kReservedKey64 : key < kReservedKey32;
  if (error == std::errc() && fits) return key;
  return absl::OutOfRangeError(absl::StrCat(
      "'", text.substr(0, 40), "' is beyond the range of a signed ", recipe_.key_bits,
      "-bit key: use ", recipe_.key_bits == 32 ? "--key-bits=64 or " : "", "--keys=hash"));
}

Key RowEncoder::HashedKey(absl::string_view prefix, absl::string_view value,
                          std::string* text) const {
  text->assign(prefix.data(), prefix.size());
  text->append(value.data(), value.size());
  return HashedKeyOf(*text, recipe_.key_bits == 64);
}

}  // namespace cistern
