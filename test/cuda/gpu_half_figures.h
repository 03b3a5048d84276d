// The 16-bit part of gpu_benchmark: dense layers and interactions at DLRM's batch.
#pragma once

#include "cuda/op/dense/bias_gradient.h"
#include "cuda/op/dense/dot_interaction.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/fully_connected.h"
#include "test/cuda/gpu_figures.h"

namespace cistern::op {

class HalfFigures {
 public:
  // The product roof must be that of `type`.
  HalfFigures(Figures& figures, ElementType type)
      : figures_(figures),
        type_(type),
        name_(type == ElementType::kHalf ? "float16" : "bfloat16"),
        b_(figures.Small(65536)) {}

  void Measure() {
    Layer(figures_.Small(429, 45), figures_.Small(1024, 128));
    Layer(figures_.Small(1024, 128), figures_.Small(1024, 128));
    for (const size_t dim : {16, 64, 128}) Interaction(dim);
  }

 private:
  Memory Random(size_t count) {
    Memory floats = figures_.Random(static_cast<double>(count));
    Memory halves = figures_.Take(2.0 * static_cast<double>(count));
    Convert(floats.view<float>().data, At(halves), count, figures_.stream());
    (void)figures_.stream().Wait();  // before floats is freed
    return halves;
  }
  Values At(Memory& memory) const { return {memory.data(), type_}; }
  void Measure(const std::string& what, size_t elements, double flops,
               const std::function<void()>& call) {
    figures_.Measure(absl::StrCat(name_, " ", what), 2.0 * static_cast<double>(elements), flops,
                     [&call](size_t) { call(); });
  }

  void Layer(size_t k, size_t n) {
    Stream& stream = figures_.stream();
    Memory x = Random(b_ * k), weight = Random(k * n), bias = Random(n), y = Random(b_ * n);
    Memory dx = Random(b_ * k), dweight = figures_.Random(static_cast<double>(k * n));
    Memory dbias = figures_.Random(static_cast<double>(n));
    Memory scratch_memory = figures_.Take(
        4.0 * static_cast<double>(std::max(FullyConnectedScratchFloats(type_, b_, k, n),
                                           BiasGradientScratchFloats(b_, n))));
    if (!stream.status().ok()) return;
    auto *scratch = scratch_memory.view<float>().data, *dw = dweight.view<float>().data;
    const std::string shape = absl::StrCat(" ", b_, " x ", k, " x ", n);
    const double flops = 2.0 * static_cast<double>(b_ * k) * static_cast<double>(n);
    const size_t forward = b_ * k + k * n + b_ * n, backward = 2 * b_ * k + 2 * b_ * n + 4 * k * n;
    Measure("FullyConnectedRelu" + shape, forward, flops, [&] {
      FullyConnectedRelu(At(x), At(weight), At(bias), At(y), b_, k, n, scratch, stream);
    });
    Measure("BiasGradient with ReLU" + shape, 3 * b_ * n, 0,
            [&] { BiasGradient(At(y), At(y), dbias.view<float>().data, b_, n, scratch, stream); });
    Measure("FullyConnectedBackward" + shape, backward, 2 * flops, [&] {
      FullyConnectedBackward(At(x), At(weight), At(y), Write::kOverwrite, At(dx), dw, b_, k, n,
                             scratch, stream);
    });
  }

  void Interaction(size_t dim) {
    constexpr size_t kSlots = 26, kPairs = (kSlots + 1) * kSlots / 2;
    Stream& stream = figures_.stream();
    const size_t vectors = b_ * (kSlots + 1) * dim, columns = DotInteractionColumns(kSlots, dim);
    Memory mlp = Random(b_ * dim), slots = Random(b_ * kSlots * dim), y = Random(b_ * columns);
    Memory dmlp = Random(b_ * dim), dslots = Random(b_ * kSlots * dim);
    if (!stream.status().ok()) return;
    const double flops = 2.0 * static_cast<double>(b_ * kPairs * dim);
    const std::string shape = absl::StrCat(", 26 slots, D=", dim);
    Measure("DotInteraction" + shape, vectors + b_ * columns, flops,
            [&] { DotInteraction(At(mlp), At(slots), At(y), b_, kSlots, dim, stream); });
    Measure("DotInteractionBackward" + shape, 2 * vectors + b_ * columns, 2 * flops, [&] {
      DotInteractionBackward(At(mlp), At(slots), At(y), Write::kOverwrite, At(dmlp),
                             Write::kOverwrite, At(dslots), b_, kSlots, dim, stream);
    });
  }

  Figures& figures_;
  const ElementType type_;
  const std::string name_;
  const size_t b_;
};

}  // namespace cistern::op
