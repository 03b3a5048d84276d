#include "common/trace/trace_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

using nlohmann::ordered_json;

// Groups of rows are "processes" in the format. The number of a worker is its rank + 1, that of a
// server follows from its place among the servers that the worker has called.
constexpr uint32_t kFirstServer = 1'000'000;

std::string TextOf(const ordered_json& event) {
  return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string NameEvent(const char* what, uint32_t process, uint32_t thread, absl::string_view name) {
  return TextOf({{"name", what},
                 {"ph", "M"},
                 {"pid", process},
                 {"tid", thread},
                 {"args", {{"name", std::string(name)}}}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(FileSystem& files,
                                                             const TraceOptions& options) {
  CISTERN_RETURN_IF_ERROR(NewFile::Check(options.path, {}));
  const absl::Status removed = files.Remove(options.path);
  if (!absl::IsNotFound(removed)) CISTERN_RETURN_IF_ERROR(removed);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(options.path));
  CISTERN_RETURN_IF_ERROR(file->Append("["));
  std::unique_ptr<TraceFile> trace(new TraceFile(std::move(file), options));
  const std::string run = options.run.empty() ? "" : absl::StrCat(" of run ", options.run);
  absl::MutexLock lock(&trace->mutex_);
  // The first event has no comma before it.
  const std::string name = absl::StrCat(
      "\n",
      NameEvent("process_name", options.rank + 1, 0, absl::StrCat("worker ", options.rank, run)));
  CISTERN_RETURN_IF_ERROR(trace->file_->Append(name));
  trace->bytes_ = name.size();
  return trace;
}

TraceFile::TraceFile(std::unique_ptr<WritableFile> file, const TraceOptions& options)
    : options_(options),
      steady_begin_(std::chrono::steady_clock::now()),
      begin_(absl::Now()),
      file_(std::move(file)) {}

TraceFile::~TraceFile() {
  absl::MutexLock lock(&mutex_);
  if (file_ == nullptr) return;
  absl::Status closed = file_->Append("\n]\n");
  if (closed.ok()) closed = file_->Close();
  if (!closed.ok()) LogWarning(absl::StrCat("the trace is not complete: ", closed.message()));
}

double TraceFile::MicrosecondsOf(SteadyTime time) const {
  const absl::Time at = begin_ + absl::FromChrono(time - steady_begin_);
  return static_cast<double>(absl::ToUnixNanos(at)) / 1000;
}

void TraceFile::Append(const std::string& events) {
  if (file_ == nullptr) return;
  absl::Status written;
  if (bytes_ + events.size() > options_.max_bytes) {
    LogWarning(absl::StrCat(options_.path, " has reached ", options_.max_bytes,
                            " bytes; the rest of the run is not traced"));
    written = file_->Append("\n]\n");
    if (written.ok()) written = file_->Close();
    file_ = nullptr;
    return;
  }
  written = file_->Append(events);
  bytes_ += events.size();
  if (written.ok()) return;
  LogWarning(absl::StrCat("the rest of the run is not traced: ", written.message()));
  file_ = nullptr;
}

uint32_t TraceFile::ThreadOf(absl::string_view name) {
  const auto found = threads_.find(name);
  if (found != threads_.end()) return found->second;
  const uint32_t number = static_cast<uint32_t>(threads_.size()) + 1;
  threads_.emplace(name, number);
  Append(absl::StrCat(",\n", NameEvent("thread_name", options_.rank + 1, number, name)));
  return number;
}

uint32_t TraceFile::ServerOf(absl::string_view address) {
  const auto found = servers_.find(address);
  if (found != servers_.end()) return found->second;
  const uint32_t number = kFirstServer + static_cast<uint32_t>(servers_.size());
  servers_.emplace(address, number);
  Append(
      absl::StrCat(",\n", NameEvent("process_name", number, 0, absl::StrCat("server ", address))));
  return number;
}

void TraceFile::AddSpan(absl::string_view thread, absl::string_view name, SteadyTime begin,
                        SteadyTime end, uint64_t pass) {
  ordered_json event = {{"name", std::string(name)}, {"ph", "X"}, {"pid", options_.rank + 1}};
  const double from = MicrosecondsOf(begin);
  event["ts"] = from;
  event["dur"] = std::max(0.0, MicrosecondsOf(end) - from);
  if (pass > 0) event["args"]["pass"] = pass;
  absl::MutexLock lock(&mutex_);
  event["tid"] = ThreadOf(thread);
  Append(absl::StrCat(",\n", TextOf(event)));
}

std::string TraceFile::NextCallId() {
  absl::MutexLock lock(&mutex_);
  const std::string run = options_.run.empty() ? "" : options_.run + "/";
  return absl::StrCat(run, options_.rank, "/", ++calls_);
}

void TraceFile::AddCall(const TracedCall& call) {
  ordered_json args = {{"id", call.id}, {"server", call.server}};
  args["request_bytes"] = call.request_bytes;
  args["reply_bytes"] = call.reply_bytes;
  if (!call.error.empty()) args["error"] = call.error;
  const double from = MicrosecondsOf(call.begin);
  const double to = std::max(from, MicrosecondsOf(call.end));
  // Calls overlap, so each is a pair of events that an id joins.
  const auto pair = [&](uint32_t process, double begin, double end, const ordered_json& about) {
    const ordered_json both = {
        {"name", call.method}, {"cat", "call"}, {"id", call.id}, {"pid", process}, {"tid", 0}};
    ordered_json first = both, last = both;
    first.update({{"ph", "b"}, {"ts", begin}, {"args", about}});
    last.update({{"ph", "e"}, {"ts", end}});
    return absl::StrCat(",\n", TextOf(first), ",\n", TextOf(last));
  };
  absl::MutexLock lock(&mutex_);
  std::string events = pair(options_.rank + 1, from, to, args);
  if (call.handled) {
    // What a server says is not trusted to be possible.
    const double took = std::clamp(absl::ToDoubleMicroseconds(*call.handled), 0.0, to - from);
    const double begin = from + (to - from - took) / 2;
    absl::StrAppend(&events, pair(ServerOf(call.server), begin, begin + took, {{"id", call.id}}));
  }
  Append(events);
}

}  // namespace cistern
