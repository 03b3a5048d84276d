// Memory traffic per occurrence: 4 bytes for its output; in the sort by row 4 passes of 16 and 4 to
// count digits; 28 for the segment heads, their prefix sum and its use. 12 more per distinct row, 4
// per output.
#include "cuda/op/key/segments.h"

#include "cuda/op/primitive/cub.cuh"
#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

constexpr char kMakeSegments[] = "MakeSegments";

// threadIdx.x runs over the occurrences of an output, threadIdx.y over outputs.
__global__ void __launch_bounds__(kBlockThreads)
    OutputsKernel(const uint32_t* offsets, size_t outputs, uint32_t* output_of) {
  const size_t output = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (output >= outputs) return;
  const size_t end = offsets[output + 1];
  for (size_t k = offsets[output] + threadIdx.x; k < end; k += blockDim.x) {
    output_of[k] = static_cast<uint32_t>(output);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    HeadsKernel(const Row* sorted, size_t occurrences, uint32_t* heads) {
  const size_t k = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (k < occurrences) heads[k] = k == 0 || sorted[k] != sorted[k - 1];
}

// ends[k]: the number of segments that begin at or before k. Launched with at least one thread,
// even for 0 occurrences.
__global__ void __launch_bounds__(kBlockThreads)
    SegmentsKernel(const Row* sorted, const uint32_t* ends, size_t occurrences, Row* segment_rows,
                   uint32_t* segment_offsets, uint32_t* distinct) {
  const size_t k = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (k < occurrences) {
    const uint32_t before = k == 0 ? 0 : ends[k - 1];
    if (ends[k] != before) {
      segment_rows[before] = sorted[k];
      segment_offsets[before] = static_cast<uint32_t>(k);
    }
  }
  if (k > 0) return;
  const uint32_t segments = occurrences == 0 ? 0 : ends[occurrences - 1];
  segment_offsets[segments] = static_cast<uint32_t>(occurrences);
  *distinct = segments;
}

// The CUB steps, in the form that CubBytes and RunCub call. The sort is stable.
auto SortByRow(const Row* rows, Row* sorted, const uint32_t* outputs, uint32_t* sorted_outputs,
               size_t count) {
  return [=](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(temporary, bytes, rows, sorted, outputs, sorted_outputs,
                                           static_cast<int>(count), 0, 32, stream);
  };
}
auto Sum(uint32_t* counts, size_t count) {
  return [=](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(temporary, bytes, counts, counts, static_cast<int>(count),
                                         stream);
  };
}

struct SegmentsScratch {
  SegmentsScratch(size_t occurrences, void* scratch, Stream& stream) {
    if (!CubCounts(kMakeSegments, occurrences, stream)) return;
    temporary_bytes = std::max(
        CubBytes(kMakeSegments, stream, SortByRow(nullptr, nullptr, nullptr, nullptr, occurrences)),
        CubBytes(kMakeSegments, stream, Sum(nullptr, occurrences)));
    ScratchParts parts(scratch);
    output_of = parts.Take<uint32_t>(occurrences);
    sorted = parts.Take<Row>(occurrences);
    temporary = parts.Take<char>(temporary_bytes);
    bytes = parts.bytes();
  }

  uint32_t* output_of = nullptr;  // before the sort; then segment heads and their prefix sums
  Row* sorted = nullptr;
  void* temporary = nullptr;
  size_t temporary_bytes = 0, bytes = 0;
};

}  // namespace

void MakeSegments(const uint32_t* offsets, const Row* rows, size_t outputs, size_t occurrences,
                  Row* segment_rows, uint32_t* segment_offsets, uint32_t* segment_outputs,
                  uint32_t* distinct, void* scratch, Stream& stream) {
  const auto blocks = static_cast<unsigned>(CeilDivide(occurrences, kBlockThreads));
  const SegmentsScratch parts(occurrences, scratch, stream);
  const auto run = [&](const auto& step) {
    RunCub(kMakeSegments, parts.temporary, parts.temporary_bytes, stream, step);
  };
  if (occurrences > 0) {
    const dim3 block = RowBlock(CeilDivide(occurrences, outputs), kWarp);
    Launch(kMakeSegments, OutputsKernel, dim3(static_cast<unsigned>(CeilDivide(outputs, block.y))),
           block, 0, stream, offsets, outputs, parts.output_of);
    run(SortByRow(rows, parts.sorted, parts.output_of, segment_outputs, occurrences));
    Launch(kMakeSegments, HeadsKernel, dim3(blocks), dim3(kBlockThreads), 0, stream, parts.sorted,
           occurrences, parts.output_of);
    run(Sum(parts.output_of, occurrences));
  }
  Launch(kMakeSegments, SegmentsKernel, dim3(std::max(blocks, 1u)), dim3(kBlockThreads), 0, stream,
         parts.sorted, parts.output_of, occurrences, segment_rows, segment_offsets, distinct);
}

size_t MakeSegmentsScratchBytes(size_t occurrences, Stream& stream) {
  return SegmentsScratch(occurrences, nullptr, stream).bytes;
}

}  // namespace cistern::op::gpu
