// Rows that count how often they occur, and have weights only once they have occurred often enough
// (v1.TableBounds.admit_after).
//
// The value of row r begins at values + r * stride; has_embedx[r] is 1 if the row has its weights.
#pragma once

#include "common/base/host_device.h"
#include "common/value/first_weights.h"
#include "cuda/op/primitive/op.h"
#include "cuda/op/update/gradient_scaler.h"

namespace cistern::op {

// Floats count exactly up to here; rows that occur more often stay at this count, which is
// kMaxAdmitAfter.
inline constexpr uint32_t kMaxSightings = 1u << 24;

// Where a value has what, and when a row gets its weights.
struct Admission {
  uint32_t count = 0;  // the cell of the count
  uint32_t weights = 0, dim = 0, state = 0, state_floats = 0;
  uint32_t after = 0;  // occurrences; 0: every row has weights from the start
  FirstWeights first;  // slot_sizes are in device memory, too
};

// The count of a row that has occurred `more` times again. A count that no sightings have made
// (negative, too large, NaN) counts as the nearest one, NaN as 0.
CISTERN_HOST_DEVICE inline float CountSightings(float count, uint32_t more) {
  const bool in_range = count > 0.0f && count < static_cast<float>(kMaxSightings);
  const uint32_t before = in_range       ? static_cast<uint32_t>(count)
                          : count > 0.0f ? kMaxSightings
                                         : 0;
  return static_cast<float>(more < kMaxSightings - before ? before + more : kMaxSightings);
}

// grads(i) = 0 where rows[i] has no weights. rows: [distinct]. grads: [distinct, dim].
void DropUnadmitted(const uint8_t* has_embedx, const uint32_t* rows, float* grads, size_t distinct,
                    size_t dim, Stream& stream);

// Adds the occurrences of a batch to the counts of its rows. A row without weights, whatever an
// update has made of its weights and state, has zeros for both, or, once its count reaches `after`,
// its first weights and has_embedx[row] = 1.
//
// rows: [distinct], no duplicates. segment_offsets: [distinct + 1]: rows[i] occurs
// segment_offsets[i + 1] - segment_offsets[i] times. keys: of all rows, keys[r]; may be null if
// `after` is 0. scaler: the step's gradient scaler; nothing changes if it skips updates. Null:
// updates are allowed.
void AdmitRows(const Admission& admission, const uint32_t* rows, const uint32_t* segment_offsets,
               const Key* keys, float* values, size_t stride, uint8_t* has_embedx, size_t distinct,
               const GradientScaler* scaler, Stream& stream);

}  // namespace cistern::op
