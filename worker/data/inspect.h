// What a Norm data set holds: for people before they train, and for finding out why training fails.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/data/sample_reader.h"

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
  NormCheck check = NormCheck::kNone;
  int key_bits = 64;
  bool key_bits_guessed = false;
  uint64_t files = 0;
  uint64_t records = 0;  // that the headers promise
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

// The summary for a terminal: a table of lines.
std::string InspectionText(const NormSummary& summary);
// The same as one JSON object, fields named as above.
std::string InspectionJson(const NormSummary& summary);

}  // namespace cistern
