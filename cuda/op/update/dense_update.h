// The optimizer and the regularizers of dense parameters, over flat buffers.
#pragma once

#include "common/value/update_rule.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// Applies one step of `rule` (common/value/update_rule.h) to each weight.
//
// grad, weight: [count]. state: [RuleStateFloats(rule.kind, count)], field after field: Adam has
// m[count], then v[count]. kAdagradShared, one state for many weights, has no meaning here and is a
// bug. step_size: StepSize(). Gradients must be finite; what they are afterwards is undefined.
// scaler: of the step, whose factor they are multiplied by; nothing changes where it is closed;
// null: open.
void DenseUpdate(const RuleParams& rule, float step_size, float* grad, float* weight, float* state,
                 size_t count, const GradientScaler* scaler, Stream& stream);

// grad += lambda * weight: the gradient of (lambda / 2) |w|^2. weight, grad: [count].
void AddL2Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream);

// grad += lambda * sign(weight): the gradient of lambda |w|; zero at zero. (HugeCTR takes -lambda
// there.) weight, grad: [count].
void AddL1Gradient(DeviceFactor lambda, const float* weight, float* grad, size_t count,
                   Stream& stream);

}  // namespace cistern::op
