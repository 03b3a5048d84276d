#include "cuda/op/dense/multi_cross.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"
#include "cuda/op/primitive/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // multi_cross.cu
decltype(op::MultiCross) MultiCross;
decltype(op::MultiCrossBackward) MultiCrossBackward;
}  // namespace gpu

namespace {

// The parameters, and the terms of the formula that all samples share.
struct CrossNet {
  const float* parameters;
  const float* bias_sums;  // [layers + 1, n]: B(l)
  const float* bias_dots;  // [layers]: B(l) . w(l)
  size_t layers, n;
  const float* w(size_t l) const { return parameters + 2 * l * n; }
  const float* bias(size_t l) const { return parameters + (2 * l + 1) * n; }
};

size_t SharedFloats(size_t layers, size_t n) {
  return (layers + 1) * n + layers;
}

// Computes the shared terms into the beginning of `scratch`.
CrossNet MakeCrossNet(const float* parameters, size_t layers, size_t n, float* scratch) {
  float* sums = scratch;
  float* dots = scratch + (layers + 1) * n;
  const CrossNet net = {parameters, sums, dots, layers, n};
  std::fill_n(sums, n, 0.0f);
  for (size_t l = 0; l < layers; ++l) {
    dots[l] = Dot(sums + l * n, net.w(l), n);
    for (size_t c = 0; c < n; ++c) sums[(l + 1) * n + c] = sums[l * n + c] + net.bias(l)[c];
  }
  return net;
}

// c: [layers + 1]. p: [layers], x . w(l).
void Coefficients(const CrossNet& net, const float* x, float* c, float* p) {
  c[0] = 1.0f;
  for (size_t l = 0; l < net.layers; ++l) {
    p[l] = Dot(x, net.w(l), net.n);
    c[l + 1] = c[l] + c[l] * p[l] + net.bias_dots[l];
  }
}

// Scratch of a block of kRowsPerBlock samples: the terms of the current sample, and partial sums.
struct BlockScratch {
  float* c;   // [layers + 1]
  float* p;   // [layers]: p(l), later overwritten with t(l)
  float* dw;  // [layers, n]: sum of t(l) c(l) x
  float* dy;  // [n]
  float* t;   // [layers]
};

size_t SumFloats(size_t layers, size_t n) {
  return layers * n + n + layers;
}

// The sums of all blocks are contiguous, for AddPartials; the terms follow them.
BlockScratch ScratchOf(float* scratch, size_t block, size_t blocks, size_t layers, size_t n) {
  float* sums = scratch + block * SumFloats(layers, n);
  float* numbers = scratch + blocks * SumFloats(layers, n) + block * (2 * layers + 1);
  return {numbers, numbers + layers + 1, sums, sums + layers * n, sums + layers * n + n};
}

// One sample: computes dx and adds to the sums of its block.
void BackwardSample(const CrossNet& net, const float* x, const float* dy, Write write, float* dx,
                    const BlockScratch& block) {
  Coefficients(net, x, block.c, block.p);
  // t(l) = x . dy + sum over k > l of t(k) p(k)
  float t = Dot(x, dy, net.n);
  for (size_t l = net.layers; l-- > 0;) {
    const float p = block.p[l];
    block.p[l] = t;
    t += t * p;
  }
  for (size_t l = 0; l < net.layers; ++l) {
    AddScaled(x, block.p[l] * block.c[l], block.dw + l * net.n, net.n);
    block.t[l] += block.p[l];
  }
  AddScaled(dy, 1.0f, block.dy, net.n);
  if (dx == nullptr) return;
  if (write == Write::kOverwrite) std::fill_n(dx, net.n, 0.0f);
  AddScaled(dy, block.c[net.layers], dx, net.n);
  for (size_t l = 0; l < net.layers; ++l) {
    AddScaled(net.w(l), block.p[l] * block.c[l], dx, net.n);
  }
}

// Gradients of the parameters from the sums over all samples: dw, dy and t are contiguous.
void ParameterGradients(const CrossNet& net, const float* sums, float* dparameters) {
  const size_t layers = net.layers, n = net.n;
  const float* dy = sums + layers * n;
  const float* t = dy + n;
  for (size_t l = layers; l-- > 0;) {
    float* dw = dparameters + 2 * l * n;
    float* dbias = dw + n;
    std::copy_n(sums + l * n, n, dw);
    AddScaled(net.bias_sums + l * n, t[l], dw, n);
    if (l + 1 == layers) {
      std::copy_n(dy, n, dbias);
    } else {
      std::copy_n(dbias + 2 * n, n, dbias);
      AddScaled(net.w(l + 1), t[l + 1], dbias, n);
    }
  }
}

template <typename T>
void MultiCrossForwardOf(const CrossNet& net, const T* x, T* y, size_t b, float* rest) {
  const size_t layers = net.layers, n = net.n, blocks = RowBlocks(b);
  ForPieces(b, kRowsPerBlock, b * (layers + 2) * n, [=](size_t begin, size_t end) {
    const BlockScratch block = ScratchOf(rest, begin / kRowsPerBlock, blocks, layers, n);
    FloatRow<T> in_row(n), out_row(n);
    for (size_t r = begin; r < end; ++r) {
      const float* in = in_row.Read(x + r * n);
      float* out = out_row.Open(y + r * n, Write::kOverwrite);
      Coefficients(net, in, block.c, block.p);
      std::copy_n(net.bias_sums + layers * n, n, out);
      AddScaled(in, block.c[layers], out, n);
      out_row.Close(y + r * n);
    }
  });
}

// sums: [RowBlocks(b)] times SumFloats, then the terms.
template <typename T>
void MultiCrossBackwardOf(const CrossNet& net, const T* x, const T* dy, Write write, T* dx,
                          size_t b, float* sums) {
  const size_t layers = net.layers, n = net.n, blocks = RowBlocks(b);
  ForPieces(b, kRowsPerBlock, b * (3 * layers + 4) * n, [=](size_t begin, size_t end) {
    const BlockScratch block = ScratchOf(sums, begin / kRowsPerBlock, blocks, layers, n);
    std::fill_n(block.dw, SumFloats(layers, n), 0.0f);
    FloatRow<T> in_row(n), grad_row(n), out_row(n);
    for (size_t r = begin; r < end; ++r) {
      const float *in = in_row.Read(x + r * n), *grad = grad_row.Read(dy + r * n);
      if (dx == nullptr) {
        BackwardSample(net, in, grad, write, nullptr, block);
        continue;
      }
      BackwardSample(net, in, grad, write, out_row.Open(dx + r * n, write), block);
      out_row.Close(dx + r * n);
    }
  });
}

}  // namespace

void MultiCross(ConstValues x, const float* parameters, Values y, size_t b, size_t layers, size_t n,
                float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiCross, x, parameters, y, b, layers, n, scratch);
  const CrossNet net = MakeCrossNet(parameters, layers, n, scratch);
  float* rest = scratch + SharedFloats(layers, n);
  ForType(x.type, [&]<typename T>() { MultiCrossForwardOf(net, As<T>(x), As<T>(y), b, rest); });
}

void MultiCrossBackward(ConstValues x, const float* parameters, ConstValues dy, Write dx_write,
                        Values dx, float* dparameters, size_t b, size_t layers, size_t n,
                        float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(MultiCrossBackward, x, parameters, dy, dx_write, dx, dparameters, b, layers, n,
                     scratch);
  const CrossNet net = MakeCrossNet(parameters, layers, n, scratch);
  float* total = scratch + SharedFloats(layers, n);
  float* rest = total + SumFloats(layers, n);
  ForType(x.type, [&]<typename T>() {
    MultiCrossBackwardOf(net, As<T>(x), As<T>(dy), dx_write, As<T>(dx), b, rest);
  });
  AddPartials(rest, RowBlocks(b), SumFloats(layers, n), total);
  ParameterGradients(net, total, dparameters);
}

size_t MultiCrossScratchFloats(size_t b, size_t layers, size_t n) {
  return SharedFloats(layers, n) + SumFloats(layers, n) +
         RowBlocks(b) * (SumFloats(layers, n) + 2 * layers + 1);
}

}  // namespace cistern::op
