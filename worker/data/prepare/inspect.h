// Summarizes a data set, to check it before training or to find out why training fails.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern::data {

struct InspectOptions {
  std::string source;        // a file list, a Norm file, or several, comma-separated
  int key_bits = 0;          // 32 or 64; 0: tries both
  uint64_t max_samples = 0;  // inspects only the first ones; 0: all
  uint64_t print = 0;        // number of samples to print
  size_t top = 5;            // number of most frequent keys to list per slot
};

struct NormSummary {
  struct Number {
    double mean = 0, min = 0, max = 0;
    uint64_t zeros = 0;
  };
  struct Slot {
    uint64_t keys = 0;      // over all samples
    uint64_t empty = 0;     // samples without a key in this slot
    uint32_t max_keys = 0;  // maximum per sample
    uint64_t distinct = 0;
    bool distinct_exact = true;                 // false: estimated within about 2 %
    std::vector<std::pair<Key, uint64_t>> top;  // key, count
  };
  DataFormat format = DataFormat::kNorm;
  NormCheck check = NormCheck::kNone;  // Norm
  int key_bits = 64;                   // Norm
  bool key_bits_guessed = false;
  uint64_t files = 0;
  uint64_t records = 0;  // in the files; Norm: sum of the headers
  uint64_t samples = 0;  // inspected
  SampleShape shape;     // one sparse input with all slots
  std::vector<Number> label, dense;
  std::vector<Slot> slots;
  uint32_t max_keys = 0;           // maximum per sample, all slots
  std::vector<std::string> first;  // samples as text: "label 1 | dense 0.5 | 0: 7 8 | 1: | ..."
};

// Reads the whole source with the checks of training. kDataLoss, kOutOfRange: as OpenNorm; a file
// that is valid with neither key width is kDataLoss.
absl::StatusOr<NormSummary> InspectNorm(const InspectOptions& options);

// The same for files of other formats, which do not describe their own layout: `data` does. Ignores
// data.source and options.key_bits. Errors: as OpenDataSet.
absl::StatusOr<NormSummary> InspectDataSet(const InspectOptions& options, DataSetOptions data);

// Formats the summary as a table for a terminal.
std::string InspectionText(const NormSummary& summary);
// Formats the summary as one JSON object with the field names above.
std::string InspectionJson(const NormSummary& summary);

}  // namespace cistern::data
