#include "common/value/accessor/ctr_old_rows.h"

#include "absl/types/span.h"
#include "common/value/accessor/ctr_accessor.h"
#include "common/value/accessor/row_parts.h"

namespace cistern {

// The number of cells of a row without embedx.
size_t OldCtrRows::CellsOfHead(CtrFields fields, bool is_text) const {
  // Up to the state of embed_w. In text show and click are one field each.
  const size_t cells = SlotIndex(layout_) - (is_text ? 2 : 0);
  return cells + (fields.uid ? (is_text ? 1 : 2) : 0) + (fields.slot ? 1 : 0);
}

std::optional<CtrFields> OldCtrRows::FieldsOfShort(size_t cells, bool is_text,
                                                   CtrFields present) const {
  const CtrFields heads[] = {{true, true}, {false, true}, {false, false}};
  // Records always include the slot: without it, they could not be told from a whole record without
  // embedx.
  for (const CtrFields head : absl::MakeConstSpan(heads, is_text ? 3 : 2)) {
    if (head.uid && !present.uid) continue;
    if (cells == CellsOfHead(head, is_text)) return head;
  }
  return std::nullopt;
}

std::optional<OldForm> OldCtrRows::FormOf(size_t cells, bool is_text, CtrFields present) const {
  const std::optional<CtrFields> of_short = FieldsOfShort(cells, is_text, present);
  if (of_short.has_value()) return OldForm{*of_short, layout_.dim(), false};
  const RuleKind kind = layout_.rule().kind;
  const size_t part = PartCells(kind, layout_.dim());
  const std::optional<CtrFields> with_embedx =
      cells > part ? FieldsOfShort(cells - part, is_text, present) : std::nullopt;
  if (with_embedx.has_value() && layout_.dim() > 0)
    return OldForm{*with_embedx, layout_.dim(), true};
  const size_t head = CellsOfHead(present, is_text);
  const std::optional<uint32_t> dim = cells > head ? DimOfPart(kind, cells - head) : std::nullopt;
  if (!dim.has_value()) return std::nullopt;
  return OldForm{present, *dim, true};
}

void OldCtrRows::AddMissing(CtrFields present, std::vector<float>* cells) const {
  const uint32_t slot = SlotIndex(layout_);
  if (!present.slot) cells->insert(cells->begin() + slot, -1.0f);
  if (!present.uid) cells->insert(cells->begin() + slot + 1, 2, 0.0f);
}

}  // namespace cistern
