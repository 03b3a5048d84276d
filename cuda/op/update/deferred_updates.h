// Applies the deferred updates of untouched rows (common/value/deferred_updates.h) for a whole
// batch.
#pragma once

#include "common/value/deferred_updates.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Brings rows to the end of step `to` and sets their last step to `mark`: `to`, or to + 1 for rows
// that take part in the next step.
//
// rows: [count], no duplicates; null: rows 0 .. count - 1. weights, states, stride: as in
// SparseUpdate, with RowStateFloats(rule, dim) floats of state. step_sizes: [to], StepSize() of
// step t at t - 1 (null unless the rule is Adam). fading_steps: FadingSteps(rule). rule.update_type
// is not kLocal.
void ApplyDeferredUpdates(const RuleParams& rule, const float* step_sizes, uint64_t fading_steps,
                          uint64_t to, uint64_t mark, const uint32_t* rows, float* weights,
                          float* states, size_t stride, size_t count, size_t dim, Stream& stream);

}  // namespace cistern::op
