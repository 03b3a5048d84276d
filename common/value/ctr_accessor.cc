#include "common/value/ctr_accessor.h"

#include <vector>

#include "common/value/ctr_lifecycle.h"

namespace cistern {

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
  rule.unseen_days = ValueLayout::kUnseenDays;
  rule.delta_score = ValueLayout::kDeltaScore;
  rule.show = ValueLayout::kShow;
  rule.click = ValueLayout::kClick;
  rule.embed_w = ValueLayout::kEmbedW;
  rule.embed_state = ValueLayout::kEmbedState;
  rule.slot = layout.slot_index();
  rule.embedx_state = layout.state_index();
  rule.embedx_w = layout.weight_index();
  return rule;
}

bool UpdateCtrValue(const ValueLayout& layout, float step_size, Key key, const CtrPush& push,
                    float* value, bool full) {
  const CtrRule rule = MakeCtrRule(layout);
  thread_local std::vector<float> scaled;
  scaled.resize(layout.dim());
  const bool exists = PushToCtrValue(rule, step_size, push, full, scaled.data(), value);
  if (exists && !full) layout.InitializeEmbedx(key, value);
  return exists;
}

}  // namespace cistern
