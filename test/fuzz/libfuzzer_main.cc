// The entry that libFuzzer calls; CISTERN_FUZZ_TARGET is a name of ReaderTargets().
#include <cstdint>
#include <cstring>

#include "test/fuzz/reader_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const cistern::ReaderTarget& target : cistern::ReaderTargets()) {
    if (std::strcmp(target.name, CISTERN_FUZZ_TARGET) != 0) continue;
    target.read({reinterpret_cast<const char*>(data), size});
  }
  return 0;
}
