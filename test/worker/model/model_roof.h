// The least time that a training step of a model of Criteo's shape can take on a GPU: what each
// layer must compute and move over what this machine does of either at best. Nothing overlaps.
//
// Of a fully connected layer the larger of the two counts, with ReLU and bias in its products; of
// all else the bytes, each array read and written once, repeated rows from the cache. The optimizer
// is AdaGrad.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cistern {

// What the machine does at best, as gpu_benchmark measures it; 0: not known.
struct Roofs {
  double copy_gb_s = 0, fp32_tflop_s = 0, tf32_tflop_s = 0, bf16_tflop_s = 0;
};

struct ModelShape {
  double dim = 16, slots = 26;
  std::vector<std::pair<double, double>> products;  // inputs and outputs of each
  double others = 0;  // floats of other layers a sample that are read or written, both ways
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
  const double all = shape.slots * shape.dim + 13;
  if (name == "dcn") {
    shape.products = {{all, 1024}, {1024, 1024}, {1024, 1024}, {all + 1024, 1}};
    shape.others = 5 * all;  // the crosses
  } else if (name == "dcn2") {
    shape.products = {{all, all},   {all, all},   {all, all},     {all, 1024},
                      {1024, 1024}, {1024, 1024}, {all + 1024, 1}};
    shape.others = 3 * 8 * all;  // of each cross x0, its product, x and the next; and back
  } else if (name == "deepfm") {
    shape.products = {{all, 400}, {400, 400}, {400, 400}, {400, 1}};
    shape.others = 3 * shape.slots * shape.dim;  // the factorization machine
  } else {
    shape.products = {{all, 1024}, {1024, 1024}, {1024, 1}};
  }
  return shape;
}

// Milliseconds. element_bytes: of an activation. tflop_s: of products in their arithmetic.
// distinct: rows of the batch, of batch * slots lookups.
inline double LeastStepMs(const ModelShape& shape, double batch, double distinct,
                          double element_bytes, double copy_gb_s, double tflop_s) {
  const double bytes_a_ms = copy_gb_s * 1e6, flops_a_ms = tflop_s * 1e9;
  double ms = 0;
  for (const auto& [k, n] : shape.products) {
    // Forward, and two products back of which one makes a gradient of floats.
    const double flops = 6 * batch * k * n;
    const double bytes = element_bytes * (3 * batch * (k + n) + 2 * k * n) + 4 * k * n;
    ms += std::max(flops / flops_a_ms, bytes / bytes_a_ms);
  }
  const double lookups = batch * shape.slots;
  const double pooled = element_bytes * lookups * shape.dim;  // out, and its gradient back
  const double rows = 4 * distinct * shape.dim;
  const double embedding = rows + 4 * lookups + pooled                        // forward
                           + pooled + 8 * lookups + 8 * distinct + 4 * rows;  // weights and state
  return ms + (embedding + element_bytes * batch * shape.others) / bytes_a_ms;
}

}  // namespace cistern
