#include "common/ctr_accessor.h"

#include <vector>

#include "common/ctr_lifecycle.h"

namespace cistern {

bool UpdateCtrValue(const ValueLayout& layout, float step_size, Key key, const CtrPush& push,
                    float* value, bool full) {
  SeeCtrValue(layout, push.day, value);
  const double show = LoadDouble(value + ValueLayout::kShow) + push.show;
  const double click = LoadDouble(value + ValueLayout::kClick) + push.click;
  StoreDouble(value + ValueLayout::kShow, show);
  StoreDouble(value + ValueLayout::kClick, click);
  value[layout.slot_index()] = push.slot;
  value[ValueLayout::kDeltaScore] += static_cast<float>(layout.Score(push.show, push.click));

  const float scale = layout.ctr().show_scale() && push.show > 0 ? 1.0f / push.show : 1.0f;
  const float embed_grad = push.embed_grad * scale;
  ApplyRule(layout.rule(), step_size, 1, &embed_grad, value + ValueLayout::kEmbedW,
            value + ValueLayout::kEmbedState);
  if (full) {
    thread_local std::vector<float> scaled;
    scaled.assign(push.embedx_grad, push.embedx_grad + layout.dim());
    for (float& g : scaled) g *= scale;
    ApplyRule(layout.rule(), step_size, layout.dim(), scaled.data(), value + layout.weight_index(),
              value + layout.state_index());
    return true;
  }
  if (layout.dim() == 0 || layout.Score(show, click) < layout.ctr().embedx_threshold())
    return false;
  layout.InitializeEmbedx(key, value);
  return true;
}

}  // namespace cistern
