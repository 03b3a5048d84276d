// The ctr accessor's update: what one pushed gradient does to one value (PSLib's CtrAccessor).
#pragma once

#include "common/value/ctr_rule.h"
#include "common/value/value_layout.h"

namespace cistern {

// The rules of a ctr table as plain data.
CtrRule MakeCtrRule(const ValueLayout& layout);

// Applies `push` to `value` (full_floats() cells; `full` says whether its embedx exists) and
// returns whether embedx exists now.
//
// show, click and delta_score grow, unseen_days becomes 0 (or today: SeeCtrValue), slot is
// overwritten; embed_w and embedx
// follow their gradients, divided by push.show where the spec says show_scale. The push that lifts
// the score to embedx_threshold creates embedx; its own embedx gradient is dropped, as in PSLib.
// push.show must be positive where show_scale is set (PSLib divides by zero there).
bool UpdateCtrValue(const ValueLayout& layout, float step_size, Key key, const CtrPush& push,
                    float* value, bool full);

}  // namespace cistern
