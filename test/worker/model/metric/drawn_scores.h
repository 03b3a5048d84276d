// Random labels, predictions, groups and weights that a Python program can also draw
// (reference_metrics.py): pure functions of a seed and the sample number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/types.h"

namespace cistern::model {

struct DrawnScores {
  uint64_t seed = 1, samples = 1000;
  uint64_t levels = 1 << 20;     // distinct predictions; few levels give many ties
  uint64_t groups = 50;          // groups with small numbers have most of the samples
  std::string labels = "drawn";  // or "zeros", "ones"
  bool weights = false;          // else all are 1
};

// SplitMix64 (Steele, Lea and Flood, 2014).
inline uint64_t Mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A number in [0, 1), a multiple of 2^-24.
inline double DrawnUnit(uint64_t seed, uint64_t sample, uint64_t which) {
  return static_cast<double>(Mixed(seed * 1000003 + sample * 3 + which) >> 40) * 0x1p-24;
}

struct DrawnSample {
  float label, prediction;
  Key group;
  float weight;
};

inline DrawnSample Draw(const DrawnScores& scores, uint64_t i) {
  const double unit = DrawnUnit(scores.seed, i, 0), levels = static_cast<double>(scores.levels);
  const double level = static_cast<double>(static_cast<uint64_t>(unit * levels));
  DrawnSample sample;
  sample.prediction = static_cast<float>((level + 0.5) / levels);
  // Fewer clicks than predicted; the gap is relatively larger for small predictions.
  const double rate = sample.prediction * (0.5 + 0.4 * sample.prediction);
  sample.label = scores.labels == "ones"               ? 1.0f
                 : scores.labels == "zeros"            ? 0.0f
                 : DrawnUnit(scores.seed, i, 1) < rate ? 1.0f
                                                       : 0.0f;
  const double place = DrawnUnit(scores.seed, i, 2);
  sample.group = static_cast<uint64_t>(place * place * place * static_cast<double>(scores.groups));
  // A tenth of the weights is 0, and a few are ten times the others.
  const double drawn = DrawnUnit(scores.seed ^ uint64_t{1} << 40, i, 0);
  sample.weight = !scores.weights ? 1.0f
                  : drawn < 0.1   ? 0.0f
                                  : static_cast<float>((drawn > 0.98 ? 30 : 3) * drawn);
  return sample;
}

}  // namespace cistern::model
