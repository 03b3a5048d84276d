// A lower bound on the time of a training step on a GPU, for models of Criteo's shape (roofline):
// the operations and bytes that each layer needs, divided by the machine's peak rates. Layers do
// not overlap.
//
// The time of a fully connected layer is the larger of its compute and memory time, with ReLU and
// bias fused into the products. All other layers count memory time: each array is read and written
// once, and repeated rows come from the cache. The optimizer is AdaGrad.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cistern::model {

// The machine's peak rates as measured by gpu_benchmark; 0: not known.
struct Roofs {
  double copy_gb_s = 0, fp32_tflop_s = 0, tf32_tflop_s = 0, bf16_tflop_s = 0;
};

struct ModelShape {
  double dim = 16, slots = 26;
  std::vector<std::pair<double, double>> products;  // inputs and outputs of each product
  double others = 0;  // floats per sample that other layers read or write, forward and backward
};

inline ModelShape ShapeOf(const std::string& name) {
  ModelShape shape;
  if (name.rfind("dlrm", 0) == 0) {
    shape.dim = std::stod(name.substr(4));
    const double vectors = shape.slots + 1, pairs = vectors * (vectors - 1) / 2;
    shape.products = {{13, 512},    {512, 256},  {256, shape.dim}, {shape.dim + pairs + 1, 1024},
                      {1024, 1024}, {1024, 512}, {512, 256},       {256, 1}};
    shape.others = 3 * vectors * shape.dim + 2 * (shape.dim + pairs + 1);  // the interaction
    return shape;
  }
  if (name == "dcnv2") {
    shape.dim = 128;
    const double columns = (shape.slots + 1) * shape.dim, rank = 512;
    shape.products = {{13, 512},       {512, 256},      {256, 128},      {columns, rank},
                      {rank, columns}, {columns, rank}, {rank, columns}, {columns, rank},
                      {rank, columns}, {columns, 1024}, {1024, 1024},    {1024, 512},
                      {512, 256},      {256, 1}};
    shape.others = 3 * 8 * columns;  // as in dcn2
    return shape;
  }
  const double all = shape.slots * shape.dim + 13;
  if (name == "dcn") {
    shape.products = {{all, 1024}, {1024, 1024}, {1024, 1024}, {all + 1024, 1}};
    shape.others = 5 * all;  // the crosses
  } else if (name == "dcn2") {
    shape.products = {{all, all},   {all, all},   {all, all},     {all, 1024},
                      {1024, 1024}, {1024, 1024}, {all + 1024, 1}};
    shape.others = 3 * 8 * all;  // per cross: x0, its product, x and the next x; and backward
  } else if (name == "deepfm") {
    shape.products = {{all, 400}, {400, 400}, {400, 400}, {400, 1}};
    shape.others = 3 * shape.slots * shape.dim;  // the factorization machine
  } else {
    shape.products = {{all, 1024}, {1024, 1024}, {1024, 1}};
  }
  return shape;
}

// Returns the lower bound in milliseconds.
//
// distinct: distinct rows among the batch * slots lookups.
// element_bytes: size of an activation.
// tflop_s: peak rate of products in their arithmetic.
inline double LeastStepMs(const ModelShape& shape, double batch, double distinct,
                          double element_bytes, double copy_gb_s, double tflop_s) {
  const double bytes_a_ms = copy_gb_s * 1e6, flops_a_ms = tflop_s * 1e9;
  double ms = 0;
  for (const auto& [k, n] : shape.products) {
    // One product forward, and two backward, one of which writes a float gradient.
    const double flops = 6 * batch * k * n;
    const double bytes = element_bytes * (3 * batch * (k + n) + 2 * k * n) + 4 * k * n;
    ms += std::max(flops / flops_a_ms, bytes / bytes_a_ms);
  }
  const double lookups = batch * shape.slots;
  const double pooled = element_bytes * lookups * shape.dim;  // the output, or its gradient
  const double rows = 4 * distinct * shape.dim;
  const double embedding = rows + 4 * lookups + pooled                        // forward
                           + pooled + 8 * lookups + 8 * distinct + 4 * rows;  // weights and state
  return ms + (embedding + element_bytes * batch * shape.others) / bytes_a_ms;
}

}  // namespace cistern::model
