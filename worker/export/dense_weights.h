// The dense parameters of a model in HugeCTR's files, written and read.
//
//   <prefix>_dense_<iter>.model            all weights in layer order, float32, no header
//   <prefix>_dense_<iter>.model.ntp.json   what is not trained: BatchNorm's running mean and
//   variance <prefix>_opt_dense_<iter>.model        the optimizer's state: its columns one after
//   the other,
//                                          each as the weights are (Adam: all m, then all v)
//
// Within a layer: InnerProduct W (row-major, in x out), b; BatchNorm gamma, beta; Multiply W;
// MultiCross w and b of each cross. That is the order of the table "dense"
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

// Column `column` of a dense table: values are [rows, columns].
std::vector<float> ColumnOf(absl::Span<const float> values, size_t columns, size_t column);

absl::Status WriteFloats(FileSystem& files, const std::string& path, absl::Span<const float> cells);

// `columns` numbers for each parameter of `layers`, column after column.
// kInvalidArgument: no such file, or another size, with both sizes and the layer that it ends in;
// kDataLoss: a number that is not finite, with its layer.
absl::StatusOr<std::vector<float>> ReadFloats(FileSystem& files, const std::string& path,
                                              const std::vector<LayerSummary>& layers,
                                              size_t columns);

// running: the table "dense_state". Numbers with nine digits, which read back to the same bits.
std::string FormatNtp(const std::vector<LayerSummary>& layers, absl::Span<const float> running);
// kInvalidArgument: other layers or widths than those of `layers`; kDataLoss: not the JSON that it
// should be, a number that is not finite, a variance below 0. `path` is for messages.
absl::StatusOr<std::vector<float>> ParseNtp(const std::string& text, const std::string& path,
                                            const std::vector<LayerSummary>& layers);

// Statistics that no file tells: mean 0, variance 1.
std::vector<float> FirstRunning(const std::vector<LayerSummary>& layers);

}  // namespace cistern
