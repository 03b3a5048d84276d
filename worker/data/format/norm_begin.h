// The beginning of a Norm file.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/format/norm_format.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct NormBegin {
  NormCheck check = NormCheck::kNone;
  NormHeader header;
};

// Reads the header of a file with either check, without comparing it with a shape. kDataLoss if
// this is not a Norm header; kUnimplemented if its check is neither None nor Sum.
absl::StatusOr<NormBegin> ReadNormBegin(ByteStream& stream);

// For messages: "label_dim 1, dense_dim 13, slot_num 26".
std::string NormShapeText(int64_t labels, int64_t dense, int64_t slots);

}  // namespace cistern::data
