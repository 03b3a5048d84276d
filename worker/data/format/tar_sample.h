// A sample as a group of tar members with one base name (WebDataset's layout).
//
//   000001.json    one JSON object with the sample's fields
//   000001.cls     optional: the label, as text, if the object has none
//
// Members with other extensions are passed over. Fields by default: "label" (a number or an array),
// "dense" (an array) and "slots" (an array with one entry per slot, over all inputs in order). With
// TarColumns, each label, dense feature and slot is a field of its own, by name.
//
// An entry of a slot is a token or an array of tokens. A token that is text is hashed when it is
// read: HashedKeyOf("COLUMN=TEXT"), where COLUMN is the name of the field, or the number of the
// slot from 0. A whole number is the key itself. null and "" are no token. A number may be text
// ("0.5"); a dense feature that is null or "" reads as 0.
//
// If keys have weights (key_weights.h), "weights" is an array with one entry per slot that has
// them: a number, or an array with as many numbers as the slot has tokens; null: all are 1.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// The names of the fields; each list is empty (the default fields) or complete.
struct TarColumns {
  std::vector<std::string> label, dense, slots;
  std::vector<std::string> weights = {};  // of the slots whose keys have weights, in order
  bool operator==(const TarColumns&) const = default;
};

struct TarSampleOptions {
  SampleShape shape;  // as ShapeInFiles (key_weights.h)
  TarColumns columns;
  bool wide_keys = false;
  std::vector<std::vector<Key>> slot_starts;  // as in NormOptions
  ReadCounts* counts = nullptr;               // as in NormOptions
  RecordPlaces* places = nullptr;             // as in NormOptions
};

// Threads: one at a time.
class TarSampleReader {
 public:
  // columns: checked by the model's configuration against `shape`.
  explicit TarSampleReader(const TarSampleOptions& options);

  // Appends the sample in `json`. cls: the contents of the member .cls, or null. On error, appends
  // nothing. kDataLoss: not a JSON object, or a field is missing or of another type; kOutOfRange: a
  // key, or a number of keys, that the model does not allow.
  absl::Status Append(absl::string_view json, const std::string* cls, SampleBlock* block);

 private:
  struct Json;  // hides the JSON library

  absl::Status AppendLabel(const Json& sample, const std::string* cls, SampleBlock* block) const;
  absl::Status AppendDense(const Json& sample, SampleBlock* block) const;
  absl::Status AppendSlots(const Json& sample, SampleBlock* block);
  absl::Status AppendSlot(const Json& entry, size_t input, size_t slot, size_t slot_of_all,
                          std::vector<Key>* keys);
  absl::Status AppendToken(const Json& token, size_t input, size_t slot, size_t slot_of_all,
                           std::vector<Key>* keys);
  absl::Status AppendWeights(const Json& sample, SampleBlock* block) const;
  void CutBack(size_t size, SampleBlock* block) const;

  const TarSampleOptions options_;
  std::vector<std::string> prefixes_;  // by slot of keys, over all inputs: "COLUMN="
  std::string text_;
};

// Splits "a/b.c/0001.left.json" into "a/b.c/0001" and "left.json", as WebDataset does: at the first
// dot of the last name. False: the name has no dot there, or is __NAME__; such members are no part
// of a sample.
bool SplitMemberName(absl::string_view name, absl::string_view* key, absl::string_view* extension);

}  // namespace cistern::data
