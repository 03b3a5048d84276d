// What a data set holds: for people before they train, and for finding out why training fails.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/data_set.h"

namespace cistern {

struct InspectOptions {
  std::string source;        // file list, Norm file, or several with commas
  int key_bits = 0;          // 32 or 64; 0: found out by trying both
  uint64_t max_samples = 0;  // looks at the first ones only; 0: all
  uint64_t print = 0;        // samples to write out
  size_t top = 5;            // most frequent keys of a slot to name
};

struct NormSummary {
  struct Number {
    double mean = 0, min = 0, max = 0;
    uint64_t zeros = 0;
  };
  struct Slot {
    uint64_t keys = 0;      // of all samples
    uint64_t empty = 0;     // samples without a key here
    uint32_t max_keys = 0;  // of a sample
    uint64_t distinct = 0;
    bool distinct_exact = true;                 // else estimated, within about 2 %
    std::vector<std::pair<Key, uint64_t>> top;  // key, times seen
  };
  DataFormat format = DataFormat::kNorm;
  NormCheck check = NormCheck::kNone;  // Norm
  int key_bits = 64;                   // Norm
  bool key_bits_guessed = false;
  uint64_t files = 0;
  uint64_t records = 0;  // in the files; Norm: that the headers promise
  uint64_t samples = 0;  // that were looked at
  SampleShape shape;     // one sparse input with all slots
  std::vector<Number> label, dense;
  std::vector<Slot> slots;
  uint32_t max_keys = 0;           // of a sample, all slots
  std::vector<std::string> first;  // samples as text: "label 1 | dense 0.5 | 0: 7 8 | 1: | ..."
};

// Reads the whole source, checking it as training would. kDataLoss, kOutOfRange: as OpenNorm; a
// file that makes sense with keys of neither width is kDataLoss.
absl::StatusOr<NormSummary> InspectNorm(const InspectOptions& options);

// The same for Raw and Parquet files, which do not say themselves how they are read: `data` says
// it. Its source and options.key_bits are not used. Errors are those of OpenDataSet.
absl::StatusOr<NormSummary> InspectDataSet(const InspectOptions& options, DataSetOptions data);

// The summary for a terminal: a table of lines.
std::string InspectionText(const NormSummary& summary);
// The same as one JSON object, fields named as above.
std::string InspectionJson(const NormSummary& summary);

}  // namespace cistern
