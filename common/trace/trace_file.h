// What a process did when, as a file that Perfetto (https://ui.perfetto.dev) and chrome://tracing
// open: the JSON array of Chrome's trace event format. docs/monitoring.md shows one.
//
// The process is one group of rows, with a row for each of its threads and one for the calls in
// flight. Each server that it calls is a group too: the time that the server took for a call, as it
// says, is drawn in the middle of the call, so no clocks have to agree.
//
// Times are those of this machine's clock when the trace began, advanced by a steady clock: traces
// of processes on one machine fit each other. The array is complete once this object is destroyed;
// Perfetto also opens the file of a process that still runs, or that was killed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/base/steady_time.h"
#include "common/io/file_system.h"

namespace cistern {

struct TraceOptions {
  std::string path;
  std::string run;    // the id of the training run; may be empty
  uint32_t rank = 0;  // of the worker
  // Afterwards nothing is written any more, and the log says so: a long run must not fill the disk.
  uint64_t max_bytes = uint64_t{1} << 30;
};

// A call to a server, once it has ended.
struct TracedCall {
  std::string id;      // from NextCallId
  std::string server;  // its address
  std::string method;
  SteadyTime begin, end;
  uint64_t request_bytes = 0, reply_bytes = 0;
  std::string error;  // its code; empty: it succeeded
  // From the arrival of the request at the server to its answer; not set: the server did not say.
  std::optional<absl::Duration> handled;
};

// Threads: any thread. Writing goes to the page cache, under a lock. The first write that fails is
// logged, and nothing more is written: a trace never ends a run.
class TraceFile {
 public:
  // Creates the file, in place of an older one. kInvalidArgument: it cannot be created there.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(FileSystem& files,
                                                           const TraceOptions& options);
  ~TraceFile();

  // What `thread` of this process did from `begin` to `end`: "pull". The spans of a thread must not
  // overlap. pass: the pass that it was for; 0: none.
  void AddSpan(absl::string_view thread, absl::string_view name, SteadyTime begin, SteadyTime end,
               uint64_t pass = 0);
  // "RUN/RANK/NUMBER", which is in the arguments of the call's spans, and in the audit log of the
  // server.
  std::string NextCallId();
  void AddCall(const TracedCall& call);

 private:
  TraceFile(std::unique_ptr<WritableFile> file, const TraceOptions& options);
  // Microseconds since 1970.
  double MicrosecondsOf(SteadyTime time) const;
  // Appends events, each with a comma and a newline before it.
  void Append(const std::string& events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t ThreadOf(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t ServerOf(absl::string_view address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TraceOptions options_;
  const SteadyTime steady_begin_;
  const absl::Time begin_;
  absl::Mutex mutex_;
  std::unique_ptr<WritableFile> file_ ABSL_GUARDED_BY(mutex_);  // null after an error
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // Their numbers in the file, by name.
  std::map<std::string, uint32_t, std::less<>> threads_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint32_t, std::less<>> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
