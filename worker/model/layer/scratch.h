// Arrays in a step's scratch memory, or in a buffer of a layer, one after another.
#pragma once

#include <cstddef>

#include "cuda/core/values.h"

namespace cistern::model {

// Hands out parts of a block of floats, each aligned as ops need it. A layer that takes the same
// sizes in the same order gets the same parts.
//
// Threads: one at a time.
class Scratch {
 public:
  // type: of the elements of all arrays.
  Scratch(float* begin, ElementType type) : next_(begin), type_(type) {}

  op::Values Take(size_t elements) { return {TakeFloats(elements), type_}; }
  // For an op's own scratch, which is float whatever the type.
  float* TakeFloats(size_t count) {
    float* const taken = next_;
    next_ += Room(count);
    return taken;
  }

  // The floats that an array of this many elements of any type takes.
  static size_t Room(size_t elements) { return (elements + 3) / 4 * 4; }

 private:
  float* next_;
  const ElementType type_;
};

}  // namespace cistern::model
