// The optimizer step and the regularizers of dense parameters, on flat buffers.
#pragma once

#include "common/value/update_rule.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// Applies one step of `rule` (common/value/update_rule.h) to each weight.
//
// grad, weight: [count]. state: [RuleStateFloats(rule.kind, count)], one array per state: Adam has
// m[count], then v[count]. A rule with one state for many weights (SharesState) is undefined here;
// passing it is a bug. step_size: StepSize(). grad must be finite; undefined afterwards. scaler:
// the step's gradient scaler; gradients are multiplied by its factor, and nothing changes if it
// skips updates. Null: updates are allowed and the factor is 1.
void DenseUpdate(const RuleParams& rule, float step_size, float* grad, float* weight, float* state,
                 size_t count, const GradientScaler* scaler, Stream& stream);

// grad += lambda * weight: the gradient of (lambda / 2) |w|^2. weight, grad: [count].
void AddL2Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream);

// grad += lambda * sign(weight): the subgradient of lambda |w|, with sign(0) = 0 (HugeCTR uses
// -lambda there). weight, grad: [count].
void AddL1Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream);

}  // namespace cistern::op
