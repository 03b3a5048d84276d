// The conventions of every op in this folder; each x.h states only what is specific to its op.
//
// An op is a free function: x.h is the contract, x_cpu.cc the specification and the CPU build, x.cu
// the GPU build of the same contract; stream.device() selects the build. If this build has no op
// for the stream's device, the op records kUnimplemented and does nothing else. On a GPU an op is
// enqueued; it does nothing once the stream has an error.
//
// Memory: pointers belong to the caller and point to memory of the stream's device. Matrices are
// row-major, [b, n] with b rows, packed unless a stride (in elements) is given. Activations are
// Values (values.h), everything else is float32. Any size may be 0. An op neither allocates nor
// waits, except on the CPU, where 16-bit activations are widened. Scratch is an argument, 16-byte
// aligned, with undefined contents before and after; XScratchFloats(...) returns its size in
// floats, XScratchBytes(...) in bytes, and the size depends only on the shape. Inputs and outputs
// do not overlap unless the contract states that they may be the same array.
//
// Order: the order of additions depends only on the shape, not on the number of threads: two runs
// give the same bits, and so do 1 thread and 16.
//
// Gradients: dx is the derivative of the loss with respect to x. Gradients of parameters are
// overwritten; gradients of inputs are overwritten or accumulated, as the Write argument selects,
// so that a tensor that feeds several layers sums its gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/core/stream.h"
#include "cuda/core/values.h"

namespace cistern::op {

enum class Write { kOverwrite, kAccumulate };

}  // namespace cistern::op
