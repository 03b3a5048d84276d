// A push to a single value of a ctr table.
#pragma once

#include <vector>

#include "common/value/accessor/ctr_accessor.h"

namespace cistern {

// Applies `push` to `value` and returns whether embedx exists afterwards.
//
// value: [layout.full_floats()]. has_embedx: whether embedx exists before the push.
//
// show, click and delta_score grow, unseen_days becomes 0 (or today: SeeCtrValue), and slot is
// overwritten. embed_w and embedx follow their gradients, divided by push.show if show_scale is
// set. The push that raises the score to embedx_threshold creates embedx; the embedx gradient of
// that push is dropped, as in PSLib. With show_scale, push.show must be positive (PSLib divides by
// zero there).
inline bool UpdateCtrValue(const ValueLayout& layout, float step_size, Key key, const CtrPush& push,
                           float* value, bool has_embedx) {
  std::vector<float> scaled(layout.dim());
  const bool exists =
      PushToCtrValue(MakeCtrRule(layout), step_size, push, has_embedx, scaled.data(), value);
  if (exists && !has_embedx) layout.InitializeEmbedx(key, value);
  return exists;
}

}  // namespace cistern
