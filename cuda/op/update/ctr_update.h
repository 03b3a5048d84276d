// The update of the rows of a ctr table that a batch touches: masking of gradients, L2, and the
// update rule (common/value/accessor/ctr_rule.h). Values of the pass table change in place.
//
// A gradient is [embed_w, embedx_w[dim]], the layer's vector: 1 + rule.dim floats. The value of row
// r begins at values + r * stride; has_embedx[r] is 1 if the row has its embedx.
#pragma once

#include "common/value/accessor/ctr_rule.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// The distinct rows of a batch and their occurrences (worker/data/source/batch.h). Row rows[i]
// occurs in outputs segment_outputs[segment_offsets[i] .. segment_offsets[i + 1]), with output =
// sample * slots + slot.
struct CtrOccurrences {
  const uint32_t* rows = nullptr;             // [distinct], no duplicates
  const uint32_t* segment_offsets = nullptr;  // [distinct + 1], from 0, strictly ascending
  const uint32_t* segment_outputs = nullptr;
  size_t distinct = 0, slots = 0;
  // The label of a sample is labels[sample * label_stride]; a label above 0 is a click.
  const float* labels = nullptr;
  size_t label_stride = 1;
};

// grads(i, 1 ..) = 0 where rows[i] has no embedx. grads: [distinct, 1 + dim].
void DropAbsentEmbedx(const uint8_t* has_embedx, const uint32_t* rows, float* grads,
                      size_t distinct, size_t dim, Stream& stream);

// grads(i) += l2 * w of rows[i], w = [embed_w, embedx_w] (zeros if the row has no embedx).
//
// square_sum: one double, overwritten with the sum of w^2. scratch: AddCtrL2ScratchFloats.
void AddCtrL2(DeviceFactor l2, const CtrRule& rule, const uint32_t* rows, const float* values,
              size_t stride, float* grads, double* square_sum, size_t distinct, float* scratch,
              Stream& stream);
size_t AddCtrL2ScratchFloats(size_t distinct);

// Pushes the batch to each of its rows: show = occurrences, click = occurrences in samples with a
// click, slot = the slot of the first occurrence, and the gradient. A row whose score reaches the
// threshold gets its embedx: first weights derived from its key, and has_embedx[row] = 1.
//
// keys: of all rows, keys[r]. first: slot_sizes are in device memory, too. step_size: StepSize().
// day: CtrPush::day. grads: [distinct, 1 + dim], finite; undefined afterwards. scaler: the step's
// gradient scaler; gradients are multiplied by its factor, and nothing changes if it skips updates.
// Null: updates are allowed and the factor is 1.
void CtrUpdate(const CtrRule& rule, const FirstWeights& first, float step_size, uint32_t day,
               const CtrOccurrences& in, const Key* keys, float* grads, float* values,
               size_t stride, uint8_t* has_embedx, const GradientScaler* scaler, Stream& stream);

}  // namespace cistern::op
