// HugeCTR's Norm format, byte by byte. All numbers are little-endian.
//
//   file    = header, then number_of_records samples, then nothing
//   header  = int64 error_check (0 None, 1 Sum), number_of_records, label_dim, dense_dim, slot_num,
//             reserved[3], which readers ignore, as HugeCTR's do                 (64 bytes)
//   sample  = float label[label_dim], float dense[dense_dim], then for each slot
//             int32 nnz, nnz keys (uint32, or int64 where input_key_type is I64)
//
// With check None, header and samples are stored as they are. With check Sum, the header and every
// sample are wrapped: int32 length of the payload, the payload, and one byte that is the sum of the
// payload's bytes modulo 256. slot_num is the sum over all sparse inputs; slots follow in the order
// of the inputs. The file does not record the width of its keys.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "worker/data/format/sample_block.h"

namespace cistern::data {

static_assert(std::endian::native == std::endian::little);

struct NormHeader {
  int64_t error_check = 0;
  int64_t number_of_records = 0;
  int64_t label_dim = 0;
  int64_t dense_dim = 0;
  int64_t slot_num = 0;
  int64_t reserved[3] = {};
};
static_assert(sizeof(NormHeader) == 64);

// Larger records are refused, so that a corrupt length cannot exhaust memory.
inline constexpr size_t kNormRecordBytesMax = size_t{64} << 20;

// A number of a file, which may stand at any address.
template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Sum of bytes modulo 256.
inline uint8_t ByteSum(const char* bytes, size_t size) {
  uint8_t sum = 0;
  for (size_t i = 0; i < size; ++i)
    sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(bytes[i]));
  return sum;
}

// Number of slots over all inputs.
inline uint64_t SlotNum(const SampleShape& shape) {
  uint64_t slots = 0;
  for (uint32_t slot_num : shape.slot_nums) slots += slot_num;
  return slots;
}

}  // namespace cistern::data
