// Numbers that are of another size in new data than they were before, as cents are where it had
// euros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/format/sample_block.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

// Sums over samples, by dense feature, of values as a recipe encodes them (so they are small).
//
// Threads: one at a time.
struct DenseSums {
  uint64_t samples = 0;
  std::vector<double> sum, squares;

  void Add(const SampleBlock& block);
  void Add(const DenseSums& other);  // of the same recipe
};

struct ShiftedColumn {
  std::string column;
  std::string sentence;  // with a typical number of before and of now
};

// The columns whose numbers moved by more than ten times in their geometric mean, or, if they are
// not read as logarithms, by more than three deviations in their mean or by more than ten times in
// their deviation. Of less than 50 samples none is known.
//
// before, fresh: of data that `recipe`, or one that it extends, encoded.
std::vector<ShiftedColumn> ShiftedColumns(const Recipe& recipe, const DenseSums& before,
                                          const DenseSums& fresh);

}  // namespace cistern::data
