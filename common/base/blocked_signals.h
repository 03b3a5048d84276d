// Keeps signal handlers off a thread while it runs code that they would damage (gemm_onednn.cc).
//
//   const BlockedSignals blocked;
//   dnnl_sgemm(...);
#pragma once

namespace cistern {

// While one exists, no handler of an asynchronous signal runs on the calling thread: a signal for
// the process goes to another thread or waits. Signals of a fault of this thread (SIGSEGV ...) are
// not blocked. Costs two system calls, or nothing inside another one. Destroy it on its thread.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
};

// The same until the calling thread ends, for a thread of a pool, which need not handle signals.
void BlockSignalsOfPoolThread();

}  // namespace cistern
