// Sorts scores: the predictions of an evaluation, before pairs are counted for AUC
// (worker/model/metric/auc.h).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// x: [count], all >= +0, no NaN; sorted ascending in place. scratch: SortScoresScratchBytes,
// 256-byte aligned.
void SortScores(float* x, size_t count, void* scratch, Stream& stream);
size_t SortScoresScratchBytes(size_t count, Stream& stream);

}  // namespace cistern::op
