// What every op of this folder has in common; each x.h states only what is its own.
//
// An op is a free function: x.h is the contract, x_cpu.cc the specification and the CPU build, x.cu
// the GPU build of the same contract, chosen by stream.device(). A stream whose device this build
// has no op for gets kUnimplemented recorded and nothing else happens. On a GPU an op is enqueued,
// and does nothing once the stream has an error.
//
// Memory: pointers belong to the caller and lie in the memory of the stream's device. Matrices are
// row-major, [b, n] with b rows, packed unless a stride (in elements) is given; activations are
// Values (values.h), all else is float32. Any size may be 0. An op neither allocates nor waits (but
// on the CPU, where activations of 16 bits are widened). Scratch is an argument, 16-byte aligned,
// contents undefined before and after; XScratchFloats(...) says how many floats, XScratchBytes(...)
// how many bytes, and that depends on the shape alone. Inputs and outputs do not overlap unless the
// contract says that they may be the same array.
//
// Order: sums are added in an order that depends on the shape alone, not on the number of threads:
// two runs give the same bits, and so do 1 thread and 16.
//
// Gradients: dx is the derivative of the loss with respect to x. Parameters' gradients are
// overwritten; gradients of inputs are overwritten or added to, as the Write argument says, so that
// a tensor that feeds several layers accumulates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/core/stream.h"
#include "cuda/core/values.h"

namespace cistern::op {

enum class Write { kOverwrite, kAccumulate };

}  // namespace cistern::op
