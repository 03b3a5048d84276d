// Memory traffic per row: 8 bytes to copy it; in the sort 4 passes of 8 and 4 to count digits; 4 to
// select the distinct rows; 8 to read and write it at the end; 4 per distinct row. The final search
// hits the cache otherwise: neighbouring threads share its first steps.
#include "cuda/op/key/compact_rows.h"

#include "cuda/core/memory.h"
#include "cuda/op/primitive/cub.cuh"

namespace cistern::op::gpu {
namespace {

constexpr char kCompactRows[] = "CompactRows";

__global__ void __launch_bounds__(kBlockThreads)
    PlacesKernel(const Row* distinct_rows, const uint32_t* distinct, size_t count, Row* rows) {
  const size_t k = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (k >= count) return;
  const Row row = rows[k];
  uint32_t begin = 0, end = *distinct;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (distinct_rows[middle] < row) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  rows[k] = begin;
}

// The CUB steps, in the form that CubBytes and RunCub call.
auto SortRows(cub::DoubleBuffer<Row>& rows, size_t count) {
  return [&rows, count](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, rows, static_cast<int>(count), 0, 32,
                                          stream);
  };
}
auto SelectRows(const Row* rows, size_t count, Row* distinct_rows, uint32_t* distinct) {
  return [=](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceSelect::Unique(temporary, bytes, rows, distinct_rows, distinct,
                                     static_cast<int>(count), stream);
  };
}

struct CompactRowsScratch {
  CompactRowsScratch(size_t count, void* scratch, Stream& stream) {
    if (!CubCounts(kCompactRows, count, stream)) return;
    cub::DoubleBuffer<Row> none;
    temporary_bytes =
        std::max(CubBytes(kCompactRows, stream, SortRows(none, count)),
                 CubBytes(kCompactRows, stream, SelectRows(nullptr, count, nullptr, nullptr)));
    ScratchParts parts(scratch);
    copied = parts.Take<Row>(count);
    sorted = parts.Take<Row>(count);
    temporary = parts.Take<char>(temporary_bytes);
    bytes = parts.bytes();
  }

  Row *copied = nullptr, *sorted = nullptr;  // the two buffers of the sort
  void* temporary = nullptr;
  size_t temporary_bytes = 0, bytes = 0;
};

}  // namespace

void CompactRows(Row* rows, size_t count, Row* distinct_rows, uint32_t* distinct, void* scratch,
                 Stream& stream) {
  if (count == 0) return ZeroOnDevice(distinct, sizeof(uint32_t), stream);
  const CompactRowsScratch parts(count, scratch, stream);
  const auto run = [&](const auto& step) {
    RunCub(kCompactRows, parts.temporary, parts.temporary_bytes, stream, step);
  };
  if (!stream.status().ok()) return;
  CopyOnDevice(rows, parts.copied, count * sizeof(Row), stream);
  cub::DoubleBuffer<Row> sorted(parts.copied, parts.sorted);
  run(SortRows(sorted, count));
  run(SelectRows(sorted.Current(), count, distinct_rows, distinct));
  const auto blocks = static_cast<unsigned>(CeilDivide(count, kBlockThreads));
  Launch(kCompactRows, PlacesKernel, dim3(blocks), dim3(kBlockThreads), 0, stream, distinct_rows,
         distinct, count, rows);
}

size_t CompactRowsScratchBytes(size_t count, Stream& stream) {
  return CompactRowsScratch(count, nullptr, stream).bytes;
}

}  // namespace cistern::op::gpu
