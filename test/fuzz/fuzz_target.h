// A fuzz target: code that reads external bytes, as a function of bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern {

// `run` may get any error, but must not crash, hang or accept invalid input. It checks the results
// itself and aborts the process if they are invalid.
struct FuzzTarget {
  const char* name;  // its corpus is test/fuzz/corpus/<name>
  void (*run)(absl::string_view bytes);
};

// Mutates 1 to 4 places of `bytes`: flips a bit, sets, inserts, erases or copies bytes, writes a
// number, or truncates. A pure function of the seed and the bytes.
void MutateBytes(uint64_t seed, std::string* bytes);

// Runs the target on every file of its corpus. Fails the test if the corpus is empty.
void RunCorpus(const FuzzTarget& target);

// Runs the target on mutated files of its corpus. The environment variables CISTERN_FUZZ_FIRST
// (default 0) and CISTERN_FUZZ_RUNS (default `runs`) set the first seed and the number of seeds. A
// run that takes minutes ends the process and prints its seed.
void RunChangedCorpus(const FuzzTarget& target, uint64_t runs);

}  // namespace cistern
