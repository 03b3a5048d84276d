// Whether a training step may move anything, decided on the device: so that the host need not wait
// for the sums of a step before it enqueues the updates, and the next step.
#pragma once

#include "cuda/op/op.h"

namespace cistern::op {

// What a step's sums say. In the memory of the device.
struct StepGate {
  double loss = 0;       // mean over the batch, regularizers included
  double grad_norm = 0;  // of all gradients, before clipping
  float factor = 1;      // of all gradients: below 1 where the norm is clipped
  // 0: the loss is not a finite number, or the norm none whose square a float holds; no update
  // happens.
  uint32_t open = 1;
};

// How the sums of a step make its loss and norm.
struct StepRule {
  double dense_penalty = 0;      // times the sum over the dense weights
  double embedding_penalty = 0;  // times the sum of squares of each embedding's rows
  double clip_norm = 0;          // gradients are scaled down to this norm; 0: never
  // A gate that is closed stays so, until its owner opens it: nothing follows a step that failed.
  bool stays_closed = true;
};

// Sets *gate from sums: loss, dense penalty, dense squares, then of each embedding its penalty and
// its squares. sums: [3 + 2 * embeddings].
void JudgeStep(const double* sums, size_t embeddings, const StepRule& rule, StepGate* gate,
               Stream& stream);

// x *= gate->factor. x: [count].
void ScaleByGate(const StepGate* gate, float* x, size_t count, Stream& stream);

// to = from where the gate is open. from, to: [count].
void CopyIfOpen(const StepGate* gate, const float* from, float* to, size_t count, Stream& stream);

}  // namespace cistern::op
