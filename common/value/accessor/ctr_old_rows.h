// The older forms of ctr rows, which PSLib and Paddle write: uid (CtrDoubleAccessor has none) and,
// in text, slot may be missing; embedx may be missing, have the table's dim, or have any other dim.
#pragma once

#include "common/value/old_rows.h"
#include "common/value/value_layout.h"

namespace cistern {

class OldCtrRows : public OldRows {
 public:
  // layout: outlives this.
  explicit OldCtrRows(const ValueLayout& layout) : layout_(layout) {}

  std::optional<CtrFields> FieldsOfShort(size_t cells, bool is_text,
                                         CtrFields present) const override;
  std::optional<OldForm> FormOf(size_t cells, bool is_text, CtrFields present) const override;
  void AddMissing(CtrFields present, std::vector<float>* cells) const override;

 private:
  size_t CellsOfHead(CtrFields fields, bool is_text) const;

  const ValueLayout& layout_;
};

}  // namespace cistern
