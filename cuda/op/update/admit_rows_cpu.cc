#include "cuda/op/update/admit_rows.h"

#include <algorithm>

#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // admit_rows.cu
decltype(op::DropUnadmitted) DropUnadmitted;
decltype(op::AdmitRows) AdmitRows;
}  // namespace gpu

namespace {

constexpr size_t kAdmitRowGrain = 128;  // rows per piece

}  // namespace

void DropUnadmitted(const uint8_t* has_embedx, const uint32_t* rows, float* grads, size_t distinct,
                    size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DropUnadmitted, has_embedx, rows, grads, distinct, dim);
  ForPieces(distinct, kAdmitRowGrain, distinct * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (has_embedx[rows[i]] == 0) std::fill_n(grads + i * dim, dim, 0.0f);
    }
  });
}

void AdmitRows(const Admission& admission, const uint32_t* rows, const uint32_t* segment_offsets,
               const Key* keys, float* values, size_t stride, uint8_t* has_embedx, size_t distinct,
               const GradientScaler* scaler, Stream& stream) {
  CISTERN_RUN_ON_GPU(AdmitRows, admission, rows, segment_offsets, keys, values, stride, has_embedx,
                     distinct, scaler);
  if (!UpdatesAllowed(scaler)) return;
  ForPieces(distinct, kAdmitRowGrain, distinct * 4, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      float* const value = values + rows[i] * stride;
      float& count = value[admission.count];
      count = CountSightings(count, segment_offsets[i + 1] - segment_offsets[i]);
      if (has_embedx[rows[i]] != 0) continue;
      std::fill_n(value + admission.state, admission.state_floats, 0.0f);
      if (count < static_cast<float>(admission.after)) {
        std::fill_n(value + admission.weights, admission.dim, 0.0f);
        continue;
      }
      FillWeights(admission.first, keys[rows[i]], admission.dim, value + admission.weights);
      has_embedx[rows[i]] = 1;
    }
  });
}

}  // namespace cistern::op
