// Rows of one layout as rows of another, for models that were saved before a table changed.
//
// What both layouts have is kept; what only the new one has is as in a new row; what only the old
// one has is dropped:
//
//   w, embedx_w    of the smaller dim; more weights are those of a new row of the same key
//   state          of the weights that are kept, where the rule is the same; else that of a new row
//   ctr            statistics, slot, uid and embed_w; embedx where the old row has it, or where a
//                  new row has it at once
//
// Rows of PSLib and Paddle come without a schema. Their fields are told by their number:
// uid (CtrDoubleAccessor has none) and, in text, slot too may be missing, then they are 0 and -1;
// embedx is missing, or of the table's dim, or of any other, and then the fields that are there are
// those of the model's rows without embedx, which tell. A number that fits two forms is taken for
// the newer one; that its slot is no whole number gives a wrong guess away.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/value/value_layout.h"
#include "common/value/value_text.h"

namespace cistern {

// Threads: immutable; any thread.
class ValueUpgrade {
 public:
  // kInvalidArgument if the accessors differ: no field of one is one of the other.
  static absl::StatusOr<ValueUpgrade> Create(const ValueLayout& from, const ValueLayout& to);

  // from_value: [from.full_floats()]. to_value: [to.full_floats()]. Returns whether it is full.
  bool Convert(Key key, const float* from_value, bool from_full, float* to_value) const;

 private:
  ValueUpgrade(const ValueLayout& from, const ValueLayout& to) : from_(from), to_(to) {}
  void CopyState(const float* from, uint32_t from_weights, float* to, uint32_t to_weights) const;

  ValueLayout from_, to_;
};

// Rows without a schema of their own, as values of a table.
//
// Threads: one at a time.
class LegacyRows {
 public:
  // spec: of the table, and usable. fields: of the model's rows with an embedx of another dim;
  // without a uid there, none of its rows has one.
  explicit LegacyRows(const v1::TableSpec& spec, CtrFields fields = {});

  // The fields of a ctr row (a line, a record) without embedx; none if it is another.
  std::optional<CtrFields> FieldsOfShortLine(absl::string_view line) const;
  std::optional<CtrFields> FieldsOfShortRecord(absl::string_view record) const;

  // As ParseValueLine and ParseValueRecord for rows of any form above. kDataLoss: a number of
  // fields that is of none, or what those say.
  absl::Status ParseLine(absl::string_view line, Key* key, float* value, bool* full);
  absl::Status ParseRecord(absl::string_view record, Key* key, float* value, bool* full);

 private:
  // What a row is made of.
  struct Form {
    CtrFields fields;
    uint32_t dim = 0;
    bool full = false;
  };
  // The layout of a dim other than the table's, and the way from it.
  struct Source {
    ValueLayout layout;
    ValueUpgrade upgrade;
  };

  // uid_cells: 1 in text, 2 in a record; head_cells: of the head with neither uid nor slot.
  absl::StatusOr<Form> FormOf(size_t cells, uint32_t uid_cells, uint32_t head_cells) const;
  absl::StatusOr<const Source*> SourceOf(uint32_t dim);
  uint32_t LineHead() const;  // fields of a line behind the key that every form has
  std::optional<CtrFields> FieldsOfShort(size_t cells, uint32_t uid_cells,
                                         uint32_t head_cells) const;
  // kDataLoss: what was read as the slot cannot be one.
  absl::Status CheckSlot(const Source& source) const;

  const v1::TableSpec spec_;
  const CtrFields fields_;
  const ValueLayout layout_;
  std::map<uint32_t, Source> sources_;  // by dim
  std::vector<float> cells_, value_;
};

}  // namespace cistern
