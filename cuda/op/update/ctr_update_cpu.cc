#include "cuda/op/update/ctr_update.h"

#include <vector>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // ctr_update.cu
decltype(op::DropAbsentEmbedx) DropAbsentEmbedx;
decltype(op::AddCtrL2) AddCtrL2;
decltype(op::CtrUpdate) CtrUpdate;
}  // namespace gpu

namespace {

constexpr size_t kCtrRowGrain = 128;  // rows per piece

// The push of the i-th distinct row.
CtrPush PushOf(const CtrOccurrences& in, size_t i, uint32_t day, const float* gradient) {
  const uint32_t begin = in.segment_offsets[i], end = in.segment_offsets[i + 1];
  CtrPush push;
  push.slot = static_cast<float>(in.segment_outputs[begin] % in.slots);
  push.show = static_cast<float>(end - begin);
  for (uint32_t k = begin; k < end; ++k) {
    const float label = in.labels[in.segment_outputs[k] / in.slots * in.label_stride];
    push.click += label > 0 ? 1.0f : 0.0f;
  }
  push.embed_grad = gradient[0];
  push.embedx_grad = gradient + 1;
  push.day = day;
  return push;
}

}  // namespace

void DropAbsentEmbedx(const uint8_t* has_embedx, const uint32_t* rows, float* grads,
                      size_t distinct, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DropAbsentEmbedx, has_embedx, rows, grads, distinct, dim);
  ForPieces(distinct, kCtrRowGrain, distinct * dim, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (has_embedx[rows[i]] == 0) std::fill_n(grads + i * (dim + 1) + 1, dim, 0.0f);
    }
  });
}

void AddCtrL2(DeviceFactor l2, const CtrRule& rule, const uint32_t* rows, const float* values,
              size_t stride, float* grads, double* square_sum, size_t distinct, float* scratch,
              Stream& stream) {
  CISTERN_RUN_ON_GPU(AddCtrL2, l2, rule, rows, values, stride, grads, square_sum, distinct,
                     scratch);
  const size_t dim = rule.dim;
  const float factor = l2.product();
  double* partial = reinterpret_cast<double*>(scratch);
  ForPieces(distinct, kCtrRowGrain, 2 * distinct * (dim + 1), [=](size_t begin, size_t end) {
    double sum = 0;
    const auto add = [&](float w, float* grad) {
      *grad += factor * w;
      sum += double{w} * double{w};
    };
    for (size_t i = begin; i < end; ++i) {
      const float* value = values + rows[i] * stride;
      float* grad = grads + i * (dim + 1);
      add(value[rule.embed_w], grad);
      for (size_t e = 0; e < dim; ++e) add(value[rule.embedx_w + e], grad + 1 + e);
    }
    partial[begin / kCtrRowGrain] = sum;
  });
  *square_sum = 0;
  for (size_t k = 0; k < CeilDiv(distinct, kCtrRowGrain); ++k) *square_sum += partial[k];
}

size_t AddCtrL2ScratchFloats(size_t distinct) {
  return 2 * CeilDiv(distinct, kCtrRowGrain);
}

void CtrUpdate(const CtrRule& rule, const FirstWeights& first, float step_size, uint32_t day,
               const CtrOccurrences& in, const Key* keys, float* grads, float* values,
               size_t stride, uint8_t* has_embedx, const GradientScaler* scaler, Stream& stream) {
  CISTERN_RUN_ON_GPU(CtrUpdate, rule, first, step_size, day, in, keys, grads, values, stride,
                     has_embedx, scaler);
  if (!UpdatesAllowed(scaler)) return;
  const float factor = FactorOf(scaler);
  const size_t width = rule.dim + 1;
  ForPieces(in.distinct, kCtrRowGrain, 4 * in.distinct * width, [=](size_t begin, size_t end) {
    std::vector<float> scaled(rule.dim);
    for (size_t i = begin; i < end; ++i) {
      const uint32_t row = in.rows[i];
      float* value = values + row * stride;
      ScaleBy(factor, grads + i * width, width);
      const CtrPush push = PushOf(in, i, day, grads + i * width);
      const bool had_embedx = has_embedx[row] != 0;
      const bool exists = PushToCtrValue(rule, step_size, push, had_embedx, scaled.data(), value);
      if (exists && !had_embedx) CreateEmbedx(rule, first, keys[row], value);
      has_embedx[row] = exists ? 1 : 0;
    }
  });
}

}  // namespace cistern::op
