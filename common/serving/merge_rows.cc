#include "common/serving/merge_rows.h"

#include <vector>

namespace cistern {
namespace {

// The cursor at the lowest mixed key, of several the last; null if all are done.
const RowsView::Cursor* Newest(absl::Span<const RowsView::Cursor> rows) {
  const RowsView::Cursor* newest = nullptr;
  for (const RowsView::Cursor& row : rows) {
    if (row.done()) continue;
    if (newest == nullptr || row.mixed() <= newest->mixed()) newest = &row;
  }
  return newest;
}

// Calls visit(mixed, weights) for the newest row of each key, in ascending order of the mixed key.
// weights: null if the row is removed.
template <typename Visit>
absl::Status ForNewest(absl::Span<const RowsView* const> layers, const Visit& visit) {
  std::vector<RowsView::Cursor> rows;
  for (const RowsView* const layer : layers) rows.emplace_back(*layer);
  // Most rows are of the oldest layer alone, so the others are compared only when one of them
  // advances.
  const absl::Span<RowsView::Cursor> above = absl::MakeSpan(rows).subspan(1);
  const RowsView::Cursor* changed = Newest(above);
  bool any = false;
  for (uint64_t before = 0;;) {
    const RowsView::Cursor* newest = rows[0].done() ? nullptr : &rows[0];
    const bool is_changed =
        changed != nullptr && (newest == nullptr || changed->mixed() <= newest->mixed());
    if (is_changed) newest = changed;
    if (newest == nullptr) return absl::OkStatus();
    const uint64_t mixed = newest->mixed();
    if (any && mixed <= before) {
      return absl::DataLossError("rows are not in the order of their keys: a file is corrupt");
    }
    any = true;
    before = mixed;
    CISTERN_RETURN_IF_ERROR(visit(mixed, newest->weights()));
    if (!rows[0].done() && rows[0].mixed() == mixed) rows[0].Next();
    if (!is_changed) continue;
    for (RowsView::Cursor& row : above) {
      if (!row.done() && row.mixed() == mixed) row.Next();
    }
    changed = Newest(above);
  }
}

}  // namespace

absl::Status MergeRows(absl::Span<const RowsView* const> layers, bool keep_removed,
                       RowsEncoder* out) {
  std::vector<uint64_t> mixed;
  CISTERN_RETURN_IF_ERROR(ForNewest(layers, [&](uint64_t key, const char* weights) {
    if (weights != nullptr || keep_removed) mixed.push_back(key);
    return absl::OkStatus();
  }));
  CISTERN_RETURN_IF_ERROR(out->Begin(mixed));
  CISTERN_RETURN_IF_ERROR(ForNewest(layers, [&](uint64_t, const char* weights) -> absl::Status {
    if (weights != nullptr) return out->AddStored(weights);
    return keep_removed ? out->AddRemoved() : absl::OkStatus();
  }));
  return out->End();
}

}  // namespace cistern
