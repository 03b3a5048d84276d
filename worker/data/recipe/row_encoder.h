// Encodes rows of text as samples, as a recipe says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/recipe/label_classes.h"
#include "worker/data/recipe/recipe.h"
#include "worker/data/recipe/vocabulary.h"

namespace cistern::data {

// Where a row of text holds the columns of a recipe: indices of its fields, by label, dense feature
// and slot. A slot reads one field; a cross reads several.
struct RowPlaces {
  static constexpr size_t kAbsent = static_cast<size_t>(-1);
  std::vector<size_t> labels;  // kAbsent: the row has no such label
  size_t weight = kAbsent;     // likewise: its weight is 1
  std::vector<size_t> dense;
  std::vector<std::vector<size_t>> slots;
};

enum class Labels {
  kNeeded,    // one of several labels may be empty or -1, if numbers are kept: unknown
  kOptional,  // a label that is absent or empty is -1: unknown; a weight likewise is 1
};

// Finds the columns of `recipe` among `columns`, by name. kInvalidArgument names the first one that
// is missing, and the columns that are there.
absl::StatusOr<RowPlaces> FindPlaces(const Recipe& recipe, const std::vector<std::string>& columns,
                                     Labels labels);
// error: of FindPlaces. Adds what to do: rename a column, or, unless a label is missing or all
// features are, let those that are missing be empty (the option add_column, with their names).
absl::Status WithColumnsFix(const absl::Status& error, const Recipe& recipe,
                            const std::vector<std::string>& columns, Labels labels);

// What was met while encoding, and buffers.
//
// Threads: one at a time.
struct EncoderWork {
  std::vector<uint64_t> dense_missing;            // by dense feature
  std::vector<uint64_t> dense_beyond;             // likewise: numbers moved to a bound
  std::vector<uint64_t> slot_missing, slot_rare;  // by slot
  std::string text, bucket, digits;
  std::vector<absl::string_view> fields;         // of a slot
  std::vector<std::vector<std::string>> values;  // of a cross, by column
};

// The most combinations of values of a cross in one row.
inline constexpr size_t kMaxCombinations = 4096;

// Threads: any, each with its own EncoderWork.
class RowEncoder {
 public:
  // vocabulary: outlives this; null: all values are kept.
  RowEncoder(Recipe recipe, const Vocabulary* vocabulary);
  RowEncoder(const RowEncoder&) = delete;
  RowEncoder& operator=(const RowEncoder&) = delete;

  const Recipe& recipe() const { return recipe_; }
  // The shape of the samples: one sparse input with all slots; the last label is the weight, if the
  // recipe reads one.
  SampleShape shape() const;
  EncoderWork NewWork() const;

  // Appends the sample of a row to `block`, whose sparse inputs share the slots in order.
  //
  // slot_nums: of each sparse input of `block`; their sum is the number of slots.
  // Errors name the column, and append nothing: kDataLoss, kOutOfRange.
  absl::Status Encode(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                      Labels labels, absl::Span<const uint32_t> slot_nums, EncoderWork* work,
                      SampleBlock* block) const;

  // Adds the row's values to `vocabulary`.
  absl::Status Count(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                     EncoderWork* work, Vocabulary* vocabulary) const;
  // The keys of a field of a slot's column as samples have them: several for a column that holds
  // several values; the key of its stand-in, if it has one, for a missing or rare value. For a
  // cross, `column` is its name, and the field is as CrossText writes one: "1:72:33".
  // kInvalidArgument: no slot reads this column, or the field is not that of a cross.
  absl::StatusOr<std::vector<Key>> KeysOf(const std::string& column, absl::string_view field) const;
  // Whether the vocabulary has a value of a slot that is no cross; true without a vocabulary.
  bool Knows(absl::string_view value, size_t slot, EncoderWork* work) const;
  // Whether the first label of a row is 0.5 or less; false if it cannot be read.
  bool IsNegative(absl::Span<const absl::string_view> fields, const RowPlaces& places) const;
  // The number in the field of a dense feature, or its logarithm, which standardizing then shifts
  // and scales; nullopt for an empty field.
  absl::StatusOr<std::optional<double>> DenseNumber(absl::string_view field, size_t feature) const;

 private:
  struct Slot {
    std::string prefix;                         // "column="
    std::vector<const NumberForm*> forms;       // of its columns, in recipe_; null: plain
    Key missing_key = 0, rare_key = 0;          // keys that replace missing and rare values
    const Vocabulary::Counts* known = nullptr;  // the known values; null: all
    bool repeated = false;                      // an earlier slot has the same column
    bool weighted = false;                      // its keys have weights
  };

  // As Encode, but an error leaves a part of the row.
  absl::Status EncodeParts(absl::Span<const absl::string_view> fields, const RowPlaces& places,
                           Labels labels, absl::Span<const uint32_t> slot_nums, EncoderWork* work,
                           SampleBlock* block) const;
  bool IsMissing(absl::string_view field) const;
  // Whether a value of a slot is missing. A bucket has no place for nan and infinite numbers.
  bool IsMissingValue(absl::string_view value, bool bucket) const;
  absl::StatusOr<float> LabelOf(absl::string_view field, size_t i, Labels labels) const;
  // In weight_text.cc.
  absl::StatusOr<float> WeightOf(absl::Span<const absl::string_view> fields,
                                 const RowPlaces& places, Labels labels) const;
  // The number of a dense field; nullopt for a missing one.
  absl::StatusOr<std::optional<double>> NumberOf(absl::string_view field, size_t feature) const;
  absl::StatusOr<float> DenseOf(absl::string_view field, size_t feature, EncoderWork* work) const;
  // Appends the keys of a slot; with `weighted` also their weights: 1 if the slot has none. fields:
  // one, one and that of its weights, or those of a cross.
  absl::Status AppendSlot(absl::Span<const absl::string_view> fields, size_t slot, bool weighted,
                          EncoderWork* work, SparseColumn* column) const;
  // Calls visit(key, weight) for each value of a slot. A cross with a missing field has none.
  template <typename Visit>
  absl::Status ForEachKey(absl::Span<const absl::string_view> fields, size_t slot,
                          EncoderWork* work, const Visit& visit) const;
  // The same for a slot whose keys have weights. fields: the values, and their weights if they are
  // in a column of their own and known.
  template <typename Visit>
  absl::Status ForEachWeightedKey(absl::Span<const absl::string_view> fields, size_t slot,
                                  EncoderWork* work, const Visit& visit) const;
  template <typename Visit>
  absl::Status ForEachCrossKey(absl::Span<const absl::string_view> fields, size_t slot,
                               EncoderWork* work, const Visit& visit) const;
  // Adds the values of a field of a cross. form: null, or that of its numbers.
  absl::Status AppendValues(absl::string_view field, const Recipe::Source& source,
                            const NumberForm* form, std::vector<std::string>* values) const;
  absl::StatusOr<Key> KeyOf(absl::string_view value, size_t slot, EncoderWork* work) const;
  absl::Status BeyondKeys(const std::string& what) const;
  absl::StatusOr<Key> RawKey(absl::string_view value) const;
  absl::StatusOr<Key> SignedKey(absl::string_view value) const;
  Key HashedKey(absl::string_view prefix, absl::string_view value, std::string* text) const;

  const Recipe recipe_;
  absl::flat_hash_set<std::string> missing_texts_;
  size_t missing_size_most_ = 0;
  bool blank_is_missing_ = false;
  std::vector<LabelClasses> classes_;           // by label
  std::vector<const NumberForm*> dense_forms_;  // by dense feature, in recipe_; null: plain
  std::vector<Slot> slots_;
};

}  // namespace cistern::data
