// Samples as the JSON objects of tar shards (worker/data/format/tar_sample.h).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/format/sample_block.h"

namespace cistern::data {

// Appends `text` as a JSON string; false, with `json` unchanged, if it is not UTF-8.
bool AppendJsonText(absl::string_view text, std::string* json);

// How fields of text become JSON.
struct RowJsonOptions {
  std::vector<std::string> columns;
  std::vector<bool> multi;  // by column: an array of values between separators
  char separator = '|';
  bool numbers = false;  // whole numbers become numbers, which a slot takes as keys
};

// Sets `json` to one object with a field per column. kDataLoss: a field that is not UTF-8, which
// JSON cannot hold.
absl::Status RowJson(const RowJsonOptions& options, const std::vector<absl::string_view>& fields,
                     std::string* json);

// Sets `json` to the default fields of one sample: label, dense, slots,
// and weights if keys have any. Floats keep their bits.
void SampleJson(const SampleShape& shape, const SampleBlock& block, size_t sample,
                std::string* json);

}  // namespace cistern::data
