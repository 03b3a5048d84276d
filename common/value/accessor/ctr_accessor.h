// The accessor `ctr` (PSLib's CtrAccessor): a row counts its shows and clicks, has one weight from
// its first show on (embed_w), and gets its other weights (embedx) when its score is high enough.
//
//   unseen_days  delta_score  show(f64: 2 cells)  click(f64: 2 cells)  embed_w  embed_state  slot
//   uid(u64: 2 cells)  embedx_state  embedx_w[dim]
//
// With AdaGrad, which has one cell of state, this equals spec/003 section 3.2 cell by cell: dim
// 12 + D. A value without embedx ("short") ends before embedx_state. uid may start at an odd cell.
#pragma once

#include "common/value/accessor.h"
#include "common/value/accessor/ctr_rule.h"
#include "common/value/value_layout.h"

namespace cistern {

// The cells of the fields whose place is the same under every rule.
struct CtrCells {
  static constexpr uint32_t kUnseenDays = 0, kDeltaScore = 1, kShow = 2, kClick = 4, kEmbedW = 6,
                            kEmbedState = 7;
};
// The largest number of a day: a float represents every integer up to it.
constexpr uint32_t kMaxDay = 1 << 24;
// The cell of the slot in a ctr table; the uid follows it.
inline uint32_t SlotIndex(const ValueLayout& layout) {
  return CtrCells::kEmbedState + RuleStateFloats(layout.rule().kind, 1);
}

// score(show, click).
inline double CtrScore(const v1::CtrRules& rules, double show, double click) {
  return (show - click) * rules.nonclk_coeff() + click * rules.click_coeff();
}

class CtrAccessor : public Accessor {
 public:
  v1::TableSpec::Accessor kind() const override { return v1::TableSpec::CTR; }
  absl::string_view name() const override { return "ctr"; }
  absl::Status CheckConstants(const v1::TableSpec& spec) const override;
  uint32_t min_dim() const override { return 0; }  // rows without embedx
  ValueShape ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const override;
  bool defers_updates() const override { return false; }
  bool has_statistics() const override { return true; }
  // A CtrLifecycle.
  std::unique_ptr<RowLifecycle> MakeLifecycle(const ValueLayout& layout,
                                              uint32_t day) const override;
  // Any day is valid if unseen_days is a count. Otherwise the day must be above twice
  // delta_keep_days, so that no day looks like a count, and at most kMaxDay.
  absl::Status CheckDay(const v1::TableSpec& spec, uint32_t day) const override;
  std::unique_ptr<OldRows> MakeOldRows(const ValueLayout& layout) const override;
};

// Returns the rules of a ctr table as plain data.
CtrRule MakeCtrRule(const ValueLayout& layout);

}  // namespace cistern
