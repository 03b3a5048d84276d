#include "worker/data/prepare/row_encoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "common/base/hash.h"

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

}  // namespace

RowEncoder::RowEncoder(const ConvertOptions& options, const ColumnPlan& plan,
                       const std::vector<std::string>& columns, Vocabulary* vocabulary)
    : options_(options), plan_(plan), columns_(columns), dense_missing_(plan.dense.size()) {
  for (const ColumnPlan::Slot& planned : plan.slots) {
    const std::string& name = columns[planned.column];
    const bool repeated = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& other) {
      return other.plan.column == planned.column;
    });
    Slot& slot = slots_.emplace_back();
    slot.plan = planned;
    slot.repeated = repeated;
    slot.prefix = name + "=";
    slot.missing_key = HashedKey(slot.prefix, "");
    // Cannot equal the text of a value, which contains "=".
    slot.rare_key = HashedKey(name, "<rare>");
    if (vocabulary != nullptr) slot.known = vocabulary->Column(name);
    slot.summary.column = name;
  }
}

SampleShape RowEncoder::shape() const {
  SampleShape shape;
  shape.label_dim = static_cast<uint32_t>(plan_.label.size());
  shape.dense_dim = static_cast<uint32_t>(plan_.dense.size());
  shape.slot_nums = {static_cast<uint32_t>(slots_.size())};
  return shape;
}

absl::Status RowEncoder::Count(const TextRow& row) {
  for (const Slot& slot : slots_) {
    if (slot.repeated) continue;
    const absl::string_view field = row.fields[slot.plan.column];
    if (IsMissing(field)) continue;
    CISTERN_RETURN_IF_ERROR(InColumn(ForEachKey(field, slot,
                                                [&](Key key) {
                                                  uint32_t& count = (*slot.known)[key];
                                                  if (count + 1 != 0) ++count;
                                                }),
                                     slot.plan.column));
  }
  return absl::OkStatus();
}

absl::Status RowEncoder::Encode(const TextRow& row, SampleBlock* block) {
  for (size_t column : plan_.label) {
    CISTERN_RETURN_IF_ERROR(InColumn(AppendLabel(row.fields[column], &block->label), column));
  }
  positives_ += block->label[block->label.size() - plan_.label.size()] > 0;
  for (size_t i = 0; i < plan_.dense.size(); ++i) {
    const size_t column = plan_.dense[i];
    CISTERN_RETURN_IF_ERROR(InColumn(AppendDense(row.fields[column], i, &block->dense), column));
  }
  SparseColumn& sparse = block->sparse[0];
  const size_t first = sparse.keys.size();
  for (Slot& slot : slots_) {
    const size_t column = slot.plan.column, before = sparse.keys.size();
    CISTERN_RETURN_IF_ERROR(InColumn(AppendSlot(row.fields[column], &slot, &sparse.keys), column));
    sparse.offsets.push_back(static_cast<uint32_t>(sparse.keys.size()));
    slot.summary.max_keys =
        std::max(slot.summary.max_keys, static_cast<uint32_t>(sparse.keys.size() - before));
  }
  max_keys_ = std::max(max_keys_, static_cast<uint32_t>(sparse.keys.size() - first));
  ++block->size;
  return absl::OkStatus();
}

void RowEncoder::Summarize(ConvertSummary* summary) const {
  summary->positives = positives_;
  summary->max_keys = max_keys_;
  for (size_t i = 0; i < plan_.dense.size(); ++i) {
    summary->dense.push_back({columns_[plan_.dense[i]], dense_missing_[i]});
  }
  for (const Slot& slot : slots_) {
    ConvertSummary::Slot& made = summary->slots.emplace_back(slot.summary);
    made.distinct = slot.keys.Distinct();
    made.distinct_exact = slot.keys.exact();
  }
}

bool RowEncoder::IsMissing(absl::string_view field) const {
  if (field.empty()) return true;
  const auto& texts = options_.missing_values;
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return field == text; });
}

absl::Status RowEncoder::AppendLabel(absl::string_view field, std::vector<float>* labels) const {
  double value = 0;
  if (IsMissing(field)) return absl::DataLossError("the label is missing");
  if (!ParseNumber(field, &value)) return NotANumber(field);
  if (options_.label_threshold.has_value()) {
    value = value > *options_.label_threshold ? 1 : 0;
  } else if (value < 0) {
    return absl::OutOfRangeError(absl::StrCat(
        "the label is ", field, ", below 0: --label-threshold=0 makes labels 0 and 1"));
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  labels->push_back(static_cast<float>(value));
  return absl::OkStatus();
}

absl::Status RowEncoder::AppendDense(absl::string_view field, size_t place,
                                     std::vector<float>* dense) {
  double value = options_.dense_missing;
  if (IsMissing(field)) {
    ++dense_missing_[place];
  } else if (!ParseNumber(field, &value)) {
    return NotANumber(field);
  } else if (options_.dense_transform == DenseTransform::kLog1p) {
    value = std::log1p(std::max(0.0, value));
  }
  if (!FitsFloat(value)) return BeyondFloat(field);
  dense->push_back(static_cast<float>(value));
  return absl::OkStatus();
}

absl::Status RowEncoder::AppendSlot(absl::string_view field, Slot* slot, std::vector<Key>* keys) {
  const size_t before = keys->size();
  bool any = false;
  if (!IsMissing(field)) {
    CISTERN_RETURN_IF_ERROR(ForEachKey(field, *slot, [&](Key key) {
      any = true;
      if (slot->known == nullptr || slot->known->contains(key)) {
        keys->push_back(key);
        return;
      }
      ++slot->summary.rare;
      if (options_.rare == StandIn::kKey) keys->push_back(slot->rare_key);
    }));
  }
  if (!any) {
    ++slot->summary.missing;
    if (options_.missing == StandIn::kKey) keys->push_back(slot->missing_key);
  }
  for (size_t k = before; k < keys->size(); ++k) slot->keys.Add((*keys)[k]);
  return absl::OkStatus();
}

template <typename Visit>
absl::Status RowEncoder::ForEachKey(absl::string_view field, const Slot& slot, const Visit& visit) {
  if (!slot.plan.multi) {
    CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(field, slot));
    visit(key);
    return absl::OkStatus();
  }
  while (!field.empty()) {
    const size_t end = std::min(field.find(options_.separator), field.size());
    const absl::string_view value = field.substr(0, end);
    if (!IsMissing(value)) {
      CISTERN_ASSIGN_OR_RETURN(const Key key, KeyOf(value, slot));
      visit(key);
    }
    field.remove_prefix(std::min(end + 1, field.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Key> RowEncoder::KeyOf(absl::string_view value, const Slot& slot) {
  if (options_.keys == KeyMode::kRaw) return RawKey(value);
  if (!slot.plan.bucket) return HashedKey(slot.prefix, value);
  CISTERN_RETURN_IF_ERROR(BucketText(value));
  return HashedKey(slot.prefix, bucket_);
}

absl::StatusOr<Key> RowEncoder::RawKey(absl::string_view value) const {
  const Key reserved = options_.key_bits == 64 ? kReservedKey64 : kReservedKey32;
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
                   options_.key_bits == 32 ? "--key-bits=64 or " : "", "--keys=hash"));
}

// The bucket of a count, as in the winning entry of Criteo's contest: finer for small counts.
absl::Status RowEncoder::BucketText(absl::string_view value) {
  double x = 0;
  if (!ParseNumber(value, &x)) return NotANumber(value);
  if (std::abs(x) > 1e15) {
    return absl::OutOfRangeError(
        absl::StrCat("'", value.substr(0, 40), "' is beyond 1e15, the last bucket"));
  }
  const bool large = x > 2;
  const double bucket = large ? std::log(x) * std::log(x) : x;
  bucket_ = absl::StrCat(large ? "b" : "", static_cast<int64_t>(std::floor(bucket)));
  return absl::OkStatus();
}

Key RowEncoder::HashedKey(absl::string_view prefix, absl::string_view value) {
  text_.assign(prefix.data(), prefix.size());
  text_.append(value.data(), value.size());
  uint64_t hash = HashBytes(text_);
  const bool wide = options_.key_bits == 64;
  hash = wide ? hash & kReservedKey64 : (hash ^ (hash >> 32)) & kReservedKey32;
  // Maps the reserved key to the key below it.
  return hash == (wide ? kReservedKey64 : kReservedKey32) ? hash - 1 : hash;
}

absl::Status RowEncoder::InColumn(const absl::Status& status, size_t column) const {
  if (status.ok()) return status;
  return AddContext(status, absl::StrCat("column '", columns_[column], "'"));
}

}  // namespace cistern
