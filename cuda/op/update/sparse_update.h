// The optimizer step on the rows that a batch touched: values of the pass table change in place.
#pragma once

#include "common/value/update_rule.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// Applies one step of `rule` (common/value/update_rule.h) to each of the rows.
//
// rows: [distinct], no duplicates. grads: [distinct, dim]. weights, states: the first weight and
// the first state of row 0; those of row r are r * stride floats further: dim weights and
// RuleStateFloats(rule.kind, dim) states. states may be null for a rule without state. step_size:
// StepSize(). grads must be finite; undefined afterwards. scaler: the step's gradient scaler;
// gradients are multiplied by its factor, and nothing changes if it skips updates. Null: updates
// are allowed and the factor is 1.
void SparseUpdate(const RuleParams& rule, float step_size, const uint32_t* rows, float* grads,
                  float* weights, float* states, size_t stride, size_t distinct, size_t dim,
                  const GradientScaler* scaler, Stream& stream);

// grads(i) += l2 * w of rows[i]: the gradient of (l2 / 2) |w|^2 over the distinct rows of a batch.
//
// rows, grads, weights, stride: as above; weights are only read. square_sum: one double,
// overwritten with the sum of w^2 over these rows; may be null. scratch:
// AddRowL2ScratchFloats(distinct).
void AddRowL2(DeviceFactor l2, const uint32_t* rows, const float* weights, size_t stride,
              float* grads, double* square_sum, size_t distinct, size_t dim, float* scratch,
              Stream& stream);
size_t AddRowL2ScratchFloats(size_t distinct);

}  // namespace cistern::op
