// The update rule of the ctr accessor: applies one pushed gradient to one value (PSLib's
// CtrAccessor).
#pragma once

#include "common/value/ctr_rule.h"
#include "common/value/value_layout.h"

namespace cistern {

// Returns the rules of a ctr table as plain data.
CtrRule MakeCtrRule(const ValueLayout& layout);

// Applies `push` to `value` and returns whether embedx exists afterwards.
//
// value: [layout.full_floats()]. full: whether embedx exists before the push.
//
// show, click and delta_score grow, unseen_days becomes 0 (or today: SeeCtrValue), and slot is
// overwritten. embed_w and embedx follow their gradients, divided by push.show if show_scale is
// set. The push that raises the score to embedx_threshold creates embedx; the embedx gradient of
// that push is dropped, as in PSLib. With show_scale, push.show must be positive (PSLib divides by
// zero there).
bool UpdateCtrValue(const ValueLayout& layout, float step_size, Key key, const CtrPush& push,
                    float* value, bool full);

}  // namespace cistern
