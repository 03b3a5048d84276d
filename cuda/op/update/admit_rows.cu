// Memory traffic per row: AdmitRows 4 bytes (row) + 8 (segment) + 8 (count) + 1 (has_embedx), and 4
// per float of weights and state of a row without weights; DropUnadmitted 5 + 8 dim. Row accesses
// are random: a row of less than 32 bytes costs 32.
#include "cuda/op/update/admit_rows.h"

#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

// A thread handles a row: only few rows of a batch have no weights.
__global__ void __launch_bounds__(kBlockThreads)
    AdmitRowsKernel(Admission admission, const uint32_t* rows, const uint32_t* segment_offsets,
                    const Key* keys, float* values, size_t stride, uint8_t* has_embedx,
                    size_t distinct, const GradientScaler* scaler) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= distinct || !UpdatesAllowed(scaler)) return;
  const uint32_t row = rows[i];
  float* const value = values + row * stride;
  const float count =
      CountSightings(value[admission.count], segment_offsets[i + 1] - segment_offsets[i]);
  value[admission.count] = count;
  if (has_embedx[row] != 0) return;
  for (uint32_t s = 0; s < admission.state_floats; ++s) value[admission.state + s] = 0.0f;
  if (count < static_cast<float>(admission.after)) {
    for (uint32_t e = 0; e < admission.dim; ++e) value[admission.weights + e] = 0.0f;
    return;
  }
  FillWeights(admission.first, keys[row], admission.dim, value + admission.weights);
  has_embedx[row] = 1;
}

}  // namespace

void DropUnadmitted(const uint8_t* has_embedx, const uint32_t* rows, float* grads, size_t distinct,
                    size_t dim, Stream& stream) {
  MapRows("DropUnadmitted", distinct, dim, Write::kOverwrite, grads, dim, stream,
          [=] __device__(size_t r, size_t c) {
            return has_embedx[rows[r]] != 0 ? grads[r * dim + c] : 0.0f;
          });
}

void AdmitRows(const Admission& admission, const uint32_t* rows, const uint32_t* segment_offsets,
               const Key* keys, float* values, size_t stride, uint8_t* has_embedx, size_t distinct,
               const GradientScaler* scaler, Stream& stream) {
  const auto blocks = static_cast<unsigned>(CeilDivide(distinct, kBlockThreads));
  Launch("AdmitRows", AdmitRowsKernel, dim3(blocks), dim3(kBlockThreads), 0, stream, admission,
         rows, segment_offsets, keys, values, stride, has_embedx, distinct, scaler);
}

}  // namespace cistern::op::gpu
