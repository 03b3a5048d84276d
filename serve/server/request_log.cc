#include "serve/server/request_log.h"

#include <cmath>
#include <utility>

#include "serve/server/json_text.h"

namespace cistern::serve {
namespace {

// Lines that wait for the disk; above it further ones are dropped.
constexpr uint64_t kMaxWaitingBytes = uint64_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(const RequestLogOptions& options) {
  if (!(options.share >= 0 && options.share <= 1)) {
    return WithOptions(absl::InvalidArgumentError(
                           absl::StrCat("the share of logged requests is ", options.share,
                                        ", which is not in 0 to 1; 0.01 logs one of a hundred")),
                       {"log_share"});
  }
  auto log = std::unique_ptr<RequestLog>(new RequestLog(options));
  LineLogOptions file;
  file.name = "the request log";
  file.path = options.path;
  file.max_bytes = options.max_bytes;
  CISTERN_ASSIGN_OR_RETURN(log->file_, LineLog::Open(file));
  log->thread_ = std::make_unique<ThreadPool>(1);
  return log;
}

RequestLog::~RequestLog() {
  thread_ = nullptr;
}

bool RequestLog::Chooses() {
  const auto n = static_cast<double>(seen_.fetch_add(1, std::memory_order_relaxed));
  return std::floor((n + 1) * options_.share) > std::floor(n * options_.share);
}

void RequestLog::Add(const std::string& id, const PredictorShape& shape,
                     const PredictRequest& request, absl::Span<const float> predictions,
                     uint64_t commit, uint64_t unseen) {
  if (waiting_bytes_.load(std::memory_order_relaxed) >= kMaxWaitingBytes) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::string line = RequestLogLine(id, shape, request, predictions, commit, unseen);
  if (!options_.serving.empty()) {
    line.resize(line.size() - 2);  // "}\n"
    line += ",\"serving\":";
    AppendJsonString(&line, options_.serving);
    line += "}\n";
  }
  waiting_bytes_.fetch_add(line.size(), std::memory_order_relaxed);
  thread_->Run([this, line = std::move(line)] {
    Write(line);
    waiting_bytes_.fetch_sub(line.size(), std::memory_order_relaxed);
  });
}

void RequestLog::Write(const std::string& line) {
  const absl::Status written = file_->Write(line);
  faults_.Report(written, "requests are answered, but not logged");
  (written.ok() ? logged_ : dropped_).fetch_add(1, std::memory_order_relaxed);
}

std::string RequestLogLine(const std::string& id, const PredictorShape& shape,
                           const PredictRequest& request, absl::Span<const float> predictions,
                           uint64_t commit, uint64_t unseen) {
  std::string line = absl::StrCat("{\"commit\":", commit, ",\"id\":");
  AppendJsonString(&line, id);
  absl::StrAppend(&line, ",\"samples\":", request.samples, ",\"dense\":");
  AppendJsonArray(&line, request.dense);
  absl::StrAppend(&line, ",\"inputs\":[");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    absl::StrAppend(&line, i > 0 ? "," : "", "{\"name\":");
    AppendJsonString(&line, shape.inputs[i].name);
    absl::StrAppend(&line, ",\"keys\":");
    AppendJsonArray(&line, request.inputs[i].keys);
    if (!request.inputs[i].weights.empty()) {
      line += ",\"weights\":";
      AppendJsonArray(&line, request.inputs[i].weights);
    }
    absl::StrAppend(&line, ",\"offsets\":");
    AppendJsonArray(&line, request.inputs[i].offsets);
    line.push_back('}');
  }
  absl::StrAppend(&line, "],\"unseen_keys\":", unseen, ",\"probability\":");
  AppendJsonArray(&line, predictions);
  absl::StrAppend(&line, "}\n");
  return line;
}

}  // namespace cistern::serve
