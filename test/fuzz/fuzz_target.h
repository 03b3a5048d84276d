// What a fuzzer calls: something that takes outside bytes, as a function of bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern {

// `run` may meet any error; it must not crash, hang, or let something through that is forbidden,
// which it checks itself and stops the process for.
struct FuzzTarget {
  const char* name;  // its corpus is test/fuzz/corpus/<name>
  void (*run)(absl::string_view bytes);
};

// Changes 1 to 4 places of `bytes`: bits flipped, bytes set, put in, taken out, copied from
// elsewhere, numbers written. The same seed makes the same change.
void MutateBytes(uint64_t seed, std::string* bytes);

// Runs every file of the target's corpus. Fails the test if there is none.
void RunCorpus(const FuzzTarget& target);

// Runs files of the corpus changed by seeds CISTERN_FUZZ_FIRST (0) up, CISTERN_FUZZ_RUNS (`runs`)
// of them. A run that takes minutes ends the process with its seed.
void RunChangedCorpus(const FuzzTarget& target, uint64_t runs);

}  // namespace cistern
