// Reads and writes the dense parameters of a model in HugeCTR's file formats.
//
//   <prefix>_dense_<iter>.model            all weights in layer order, float32, no header
//   <prefix>_dense_<iter>.model.ntp.json   untrained values: BatchNorm's running mean, variance;
//   and
//                                          those of PReLU_Dice, which HugeCTR does not keep
//   <prefix>_opt_dense_<iter>.model        optimizer state, column after column, each laid out
//                                          like the weights (Adam: all m, then all v)
//
// Order within a layer: InnerProduct W (row-major, in x out), b; BatchNorm gamma, beta; Multiply W;
// MultiCross w and b of each cross. The table "dense" has the same order
// (worker/model/graph/model.h).
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/model/graph/model_summary.h"

namespace cistern {

std::string NtpPathOf(const std::string& dense_path);

// Returns one column of a dense table. values: [rows, columns].
std::vector<float> ColumnOf(absl::Span<const float> values, size_t columns, size_t column);

absl::Status WriteFloats(FileSystem& files, const std::string& path, absl::Span<const float> cells);

// Reads `columns` numbers for each parameter of `layers`, column after column.
// kInvalidArgument: no such file, or a wrong size, with both sizes and the layer where the file
// ends; kDataLoss: a number is not finite, with its layer.
absl::StatusOr<std::vector<float>> ReadFloats(FileSystem& files, const std::string& path,
                                              const std::vector<model::LayerSummary>& layers,
                                              size_t columns);

// running: the table "dense_state". Writes nine digits per number, which read back bit for bit.
std::string FormatNtp(const std::vector<model::LayerSummary>& layers,
                      absl::Span<const float> running);
// kInvalidArgument: layers or widths differ from `layers`; kDataLoss: malformed JSON, a number that
// is not finite, a variance below 0. `path` is for messages.
absl::StatusOr<std::vector<float>> ParseNtp(const std::string& text, const std::string& path,
                                            const std::vector<model::LayerSummary>& layers);

// The initial statistics, without a file: mean 0, variance 1.
std::vector<float> FirstRunning(const std::vector<model::LayerSummary>& layers);

}  // namespace cistern
