// The audit log of a server: one JSON object a line for each call that changes something, and for
// each call that was refused for its caller's roles:
//
//   {"time":"2026-11-27T08:15:02.318Z","server":0,"caller":"ops","roles":"admin",
//    "peer":"ipv4:10.0.0.3:51234","method":"Clear","request":{"pass":12},"outcome":"OK"}
//
// A call that its caller traces also has "trace", its id there (common/trace/trace_file.h). A line
// is written before the call is answered. Pushes are not in the log: the SealPass and CommitPass of
// their pass are. Secrets are left out.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/fault_log.h"
#include "common/base/status.h"
#include "common/io/line_log.h"
#include "common/rpc/call_access.h"

namespace cistern {

// Threads: any thread.
class AuditLog {
 public:
  // server: its rank. The file is appended to, and rotated at 64 MiB (common/io/line_log.h).
  // kInvalidArgument if it cannot be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, uint32_t server);

  // request: null if it was not read. If the line cannot be written, that is logged as an error
  // and the call continues.
  void Write(const Caller& caller, absl::string_view cluster, absl::string_view method,
             const google::protobuf::Message* request, const absl::Status& outcome);

 private:
  AuditLog(std::unique_ptr<LineLog> file, uint32_t server)
      : server_(server), file_(std::move(file)) {}

  const uint32_t server_;
  absl::Mutex mutex_;  // orders lines; held while one is written
  const std::unique_ptr<LineLog> file_ ABSL_PT_GUARDED_BY(mutex_);
  FaultLog faults_{"writing the audit log"};
};

}  // namespace cistern
