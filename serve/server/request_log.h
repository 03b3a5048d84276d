// A log of a share of the requests with their predictions, one JSON object a line, from which
// `cistern verify online` computes each prediction again:
//
//   {"commit":12,"id":"7","samples":2,"dense":[...],"inputs":[{"name":"deep","keys":[...],
//    "offsets":[...]}],"unseen_keys":0,"probability":[...],"serving":"/data/serving"}
//
// Arrays are flat, row by row, as in PredictRequest (serve/predictor/predictor.h). Floats have nine
// significant digits and read back as the same floats.
//
// The file is a LineLog (common/io/line_log.h), written by a thread of its own. Lines are dropped,
// and counted, if the thread is far behind or while the disk fails: predictions never wait for the
// log.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/fault_log.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/io/line_log.h"
#include "serve/predictor/predictor.h"

namespace cistern::serve {

struct RequestLogOptions {
  std::string path;                          // empty: no log
  double share = 0.01;                       // of the requests, 0 to 1
  uint64_t max_bytes = uint64_t{256} << 20;  // of a file
  std::string serving = {};                  // the folder that is served; empty: not in the log
};

// Threads: any thread.
class RequestLog {
 public:
  // Creates the file, readable by its owner only. An existing file is renamed like a full one.
  // kInvalidArgument if the share is not in 0 to 1, or the file cannot be created.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(const RequestLogOptions& options);
  // Writes what is waiting.
  ~RequestLog();

  // Whether this request belongs to the log. Counts: of n calls, floor(n * share) return true,
  // evenly spread.
  bool Chooses();

  // Adds a line. predictions: [samples, label_dim].
  void Add(const std::string& id, const PredictorShape& shape, const PredictRequest& request,
           absl::Span<const float> predictions, uint64_t commit, uint64_t unseen);

  uint64_t logged() const { return logged_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  explicit RequestLog(const RequestLogOptions& options)
      : options_(options), faults_(absl::StrCat("writing the request log ", options.path)) {}
  void Write(const std::string& line);

  const RequestLogOptions options_;
  std::atomic<uint64_t> seen_{0}, logged_{0}, dropped_{0}, waiting_bytes_{0};

  // Used by the writing thread only, after Open:
  std::unique_ptr<LineLog> file_;
  FaultLog faults_;

  std::unique_ptr<ThreadPool> thread_;
};

// A line of the log, with its newline.
std::string RequestLogLine(const std::string& id, const PredictorShape& shape,
                           const PredictRequest& request, absl::Span<const float> predictions,
                           uint64_t commit, uint64_t unseen);

}  // namespace cistern::serve
