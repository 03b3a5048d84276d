// The entry point for libFuzzer. CISTERN_FUZZ_TARGET is the name of a target in the list that
// CISTERN_FUZZ_TARGETS returns (ReaderTargets, RpcTargets ...).
#include <cstdint>
#include <cstring>

#include "test/fuzz/meeting_targets.h"
#include "test/fuzz/reader_targets.h"
#include "test/fuzz/rpc_targets.h"
#include "test/fuzz/watch_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const cistern::FuzzTarget& target : cistern::CISTERN_FUZZ_TARGETS()) {
    if (std::strcmp(target.name, CISTERN_FUZZ_TARGET) != 0) continue;
    target.run({reinterpret_cast<const char*>(data), size});
  }
  return 0;
}
