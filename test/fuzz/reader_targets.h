// What a fuzzer calls: each reader of outside bytes as a function of bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern {

// A reader under test. `read` may return any error; it must not crash, hang, or let a sample
// through that the format forbids, which it checks itself and stops the process for.
struct ReaderTarget {
  const char* name;  // its corpus is test/fuzz/corpus/<name>
  void (*read)(absl::string_view bytes);
};

// norm, raw, file_list, keyset, metadata (a _metadata.json), parquet (where built).
const std::vector<ReaderTarget>& ReaderTargets();

// Changes 1 to 4 places of `bytes`: bits flipped, bytes set, put in, taken out, copied from
// elsewhere, numbers written. The same seed makes the same change.
void MutateBytes(uint64_t seed, std::string* bytes);

}  // namespace cistern
