// Numbers in ascending order: the predictions of an evaluation, before pairs are counted for AUC
// (worker/model/metric/auc.h).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// x: [count], none below +0 and no NaN; afterwards ascending. scratch: SortScoresScratchBytes,
// 256-byte aligned.
void SortScores(float* x, size_t count, void* scratch, Stream& stream);
size_t SortScoresScratchBytes(size_t count, Stream& stream);

}  // namespace cistern::op
