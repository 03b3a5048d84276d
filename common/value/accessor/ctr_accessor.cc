#include "common/value/accessor/ctr_accessor.h"

#include <cmath>
#include <vector>

#include "common/value/accessor/ctr_lifecycle.h"
#include "common/value/accessor/ctr_old_rows.h"
#include "common/value/finite_constant.h"

namespace cistern {
namespace {

absl::Status NotNegative(float x, const char* field) {
  CISTERN_RETURN_IF_ERROR(FiniteConstant(x, field));
  if (x >= 0.0f) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", x, "; it must be 0 or above"));
}

absl::Status CheckCtrRules(const v1::CtrRules& rules) {
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.nonclk_coeff(), "ctr.nonclk_coeff"));
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.click_coeff(), "ctr.click_coeff"));
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.embedx_threshold(), "ctr.embedx_threshold"));
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.base_threshold(), "ctr.base_threshold"));
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.delta_threshold(), "ctr.delta_threshold"));
  CISTERN_RETURN_IF_ERROR(FiniteConstant(rules.delete_threshold(), "ctr.delete_threshold"));
  CISTERN_RETURN_IF_ERROR(NotNegative(rules.delta_keep_days(), "ctr.delta_keep_days"));
  CISTERN_RETURN_IF_ERROR(
      NotNegative(rules.delete_after_unseen_days(), "ctr.delete_after_unseen_days"));
  const float rate = rules.show_click_decay_rate();
  if (!rules.has_show_click_decay_rate() || (rate > 0.0f && rate <= 1.0f)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ctr.show_click_decay_rate is ", rate, "; it must be above 0 and at most 1"));
}

}  // namespace

absl::Status CtrAccessor::CheckConstants(const v1::TableSpec& spec) const {
  return CheckCtrRules(spec.ctr());
}

ValueShape CtrAccessor::ShapeOf(const v1::TableSpec& spec, const RuleParams& rule) const {
  const uint32_t dim = spec.dim();
  const uint32_t slot = CtrCells::kEmbedState + RuleStateFloats(rule.kind, 1);
  ValueShape shape;
  shape.short_floats = shape.state_index = slot + 3;
  shape.state_floats = RowStateFloats(rule, dim);
  shape.weight_index = shape.state_index + shape.state_floats;
  shape.full_floats = shape.weight_index + dim;
  shape.embedx_is_optional = true;
  shape.starts_with_embedx = spec.ctr().embedx_threshold() <= 0.0f && dim > 0;
  shape.fields = {{.name = "unseen_days", .first = CtrCells::kUnseenDays},
                  {.name = "delta_score", .first = CtrCells::kDeltaScore},
                  {.name = "show", .first = CtrCells::kShow, .type = CellType::kDouble},
                  {.name = "click", .first = CtrCells::kClick, .type = CellType::kDouble},
                  {.name = "embed_w", .first = CtrCells::kEmbedW},
                  {.name = "embed_state",
                   .first = CtrCells::kEmbedState,
                   .count = slot - CtrCells::kEmbedState,
                   .role = FieldRole::kState,
                   .weights = 1},
                  {.name = "slot", .first = slot, .initial = -1.0f},
                  {.name = "uid", .first = slot + 1, .type = CellType::kU64, .leads_text = true},
                  {.name = "embedx_state",
                   .first = shape.state_index,
                   .count = shape.state_floats,
                   .role = FieldRole::kState,
                   .weights = dim,
                   .in_embedx = true},
                  {.name = "embedx_w",
                   .first = shape.weight_index,
                   .count = dim,
                   .role = FieldRole::kWeights,
                   .weights = dim,
                   .in_embedx = true}};
  return shape;
}

std::unique_ptr<RowLifecycle> CtrAccessor::MakeLifecycle(const ValueLayout& layout,
                                                         uint32_t day) const {
  return std::make_unique<CtrLifecycle>(&layout, day);
}

absl::Status CtrAccessor::CheckDay(const v1::TableSpec& table, uint32_t day) const {
  if (!table.ctr().day_id_decay()) return absl::OkStatus();
  const double least = 2.0 * CtrBounds(table.ctr()).delta_keep_days;
  if (day > least && day <= kMaxDay) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", table.name(), "' stores the day on which a row was last seen (day_id_decay); day ",
      day, " is out of range: it must be above ", least, " and at most ", kMaxDay,
      "; pass today's number, counted as in training (e.g. days since 1970)"));
}

std::unique_ptr<OldRows> CtrAccessor::MakeOldRows(const ValueLayout& layout) const {
  return std::make_unique<OldCtrRows>(layout);
}

CtrRule MakeCtrRule(const ValueLayout& layout) {
  const CtrBounds bounds(layout.ctr());
  CtrRule rule;
  rule.rule = layout.rule();
  rule.nonclk_coeff = layout.ctr().nonclk_coeff();
  rule.click_coeff = layout.ctr().click_coeff();
  rule.embedx_threshold = layout.ctr().embedx_threshold();
  rule.show_scale = layout.ctr().show_scale();
  rule.day_id_decay = layout.ctr().day_id_decay();
  rule.delta_keep_days = bounds.delta_keep_days;
  rule.decay_rate = bounds.decay_rate;
  rule.dim = layout.dim();
  rule.unseen_days = CtrCells::kUnseenDays;
  rule.delta_score = CtrCells::kDeltaScore;
  rule.show = CtrCells::kShow;
  rule.click = CtrCells::kClick;
  rule.embed_w = CtrCells::kEmbedW;
  rule.embed_state = CtrCells::kEmbedState;
  rule.slot = SlotIndex(layout);
  rule.embedx_state = layout.state_index();
  rule.embedx_w = layout.weight_index();
  return rule;
}

}  // namespace cistern
