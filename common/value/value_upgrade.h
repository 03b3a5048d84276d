// Converts rows of one layout to another, for models that were saved before a table changed.
//
// Fields in both layouts are kept; fields only in the new one are initialized as in a new row;
// fields only in the old one are dropped:
//
//   w, embedx_w    kept up to the smaller dim; further weights are those of a new row of the key
//   state          kept for the kept weights if the rule is the same; else that of a new row
//   ctr            statistics, slot, uid and embed_w are kept; embedx exists if the old row has it
//                  or a new row has it at once
//
// Rows of PSLib and Paddle have no schema. Their form is inferred from the number of fields
// (old_rows.h). embedx may be missing, have the table's dim, or have any other dim. In the last
// case the other fields are taken to be those of the model's rows without embedx, whose form is
// unambiguous. If the number of fields fits two forms, the newer one is assumed; a wrong guess
// shows up as a slot that is not an integer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/value/old_rows.h"
#include "common/value/value_layout.h"
#include "common/value/value_text.h"

namespace cistern {

// Threads: immutable; any thread.
class ValueUpgrade {
 public:
  // kInvalidArgument if the accessors differ: they have no field in common.
  static absl::StatusOr<ValueUpgrade> Create(const ValueLayout& from, const ValueLayout& to);

  // from_value: [from.full_floats()]. to_value: [to.full_floats()]. Returns whether to_value
  // has its embedx.
  bool Convert(Key key, const float* from_value, bool from_has_embedx, float* to_value) const;

 private:
  ValueUpgrade(const ValueLayout& from, const ValueLayout& to) : from_(from), to_(to) {}
  // Of unpacked values.
  bool ConvertFloats(Key key, const float* from, bool from_has_embedx, float* to) const;
  void CopyFields(bool embedx, const float* from, float* to) const;
  void CopyState(const float* from, uint32_t from_weights, float* to, uint32_t to_weights) const;

  ValueLayout from_, to_;
};

// Parses rows without a schema as values of a table.
//
// Threads: one at a time.
class LegacyRows {
 public:
  // spec: a valid spec of the table. fields: the optional fields in rows whose embedx has another
  // dim; if it excludes uid, no row of the model has a uid.
  explicit LegacyRows(const v1::TableSpec& spec, CtrFields fields = {});

  // The optional fields of a ctr row (a line or a record) without embedx; nullopt for any other
  // row.
  std::optional<CtrFields> FieldsOfShortLine(absl::string_view line) const;
  std::optional<CtrFields> FieldsOfShortRecord(absl::string_view record) const;

  // Like ParseValueLine and ParseValueRecord, for rows of any form above. kDataLoss as there, and
  // for a number of fields that fits no form.
  absl::Status ParseLine(absl::string_view line, Key* key, float* value, bool* has_embedx);
  absl::Status ParseRecord(absl::string_view record, Key* key, float* value, bool* has_embedx);

 private:
  // The layout for another dim than the table's, and the conversion from it.
  struct Source {
    ValueLayout layout;
    ValueUpgrade upgrade;
  };

  absl::StatusOr<OldForm> FormOf(size_t cells, bool is_text) const;
  absl::StatusOr<const Source*> SourceOf(uint32_t dim);
  // kDataLoss if the value parsed as the slot cannot be one.
  absl::Status CheckSlot(const Source& source) const;

  const v1::TableSpec spec_;
  const CtrFields fields_;
  const ValueLayout layout_;
  const std::unique_ptr<OldRows> forms_;
  std::map<uint32_t, Source> sources_;  // by dim
  std::vector<float> cells_, value_;
};

}  // namespace cistern
