#include "app/serve/serve_folder.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "app/export/version_options.h"
#include "app/run/run_folder.h"
#include "common/base/fault_log.h"
#include "common/base/host_address.h"
#include "common/base/log.h"

namespace cistern::app {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kGrace = absl::Seconds(10);  // for requests in flight at a stop

// A folder that is missing or empty may be filled later.
absl::Status CheckServingFolder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder + "/HEAD", error)) return absl::OkStatus();
  if (IsRunFolder(folder)) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(folder, " is the folder of a training, not a serving folder")),
                   absl::StrCat("export it with cistern export serving ", folder,
                                ", and serve the folder that this writes"));
  }
  const bool is_file = fs::exists(folder, error) && !fs::is_directory(folder, error);
  const std::string other = OtherThingIn(folder);
  if (!is_file && other.empty()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(
                     is_file ? absl::StrCat(folder, " is a file, not a serving folder")
                             : absl::StrCat(folder,
                                            " is not a serving folder (it has no HEAD), and holds "
                                            "other things, such as ",
                                            other)),
                 "name a folder that cistern export serving or cistern publish writes");
}

// How much is in a folder, to notice that somebody copies into it.
struct FolderSize {
  uint64_t entries = 0, bytes = 0;
  bool operator==(const FolderSize&) const = default;
};
FolderSize SizeOf(const std::string& folder) {
  FolderSize size;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    ++size.entries;
    std::error_code ignored;  // gone meanwhile
    const bool is_file = at->is_regular_file(ignored);
    const uintmax_t bytes = is_file ? at->file_size(ignored) : 0;
    if (!ignored) size.bytes += bytes;
  }
  return size;
}

ServedFolder AddressesOf(const serve::InferenceServer& server, const ServeOptions& options) {
  ServedFolder served;
  served.http = HostPortText(options.bind, server.http_port());
  served.grpc = HostPortText(options.bind, server.grpc_port());
  return served;
}

// Opens the folder, and waits for its first version while there is none, or while somebody copies
// one. Null: stopped.
absl::StatusOr<std::unique_ptr<serve::Predictor>> AwaitPredictor(const ServeOptions& options,
                                                                 serve::InferenceServer* server,
                                                                 const std::atomic<bool>& stop) {
  // A folder that has not changed for so long is whole: no copy of it is under way, and no export
  // that has yet to write HEAD.
  constexpr absl::Duration kUntilWhole = absl::Seconds(2);
  const serve::PredictorOptions opening = PredictorOptionsOf(options);
  FolderSize size;
  absl::Time changed = absl::InfinitePast();
  const absl::Duration pause = absl::Milliseconds(options.poll_ms > 0 ? options.poll_ms : 1000);
  FaultLog faults(absl::StrCat("opening ", options.folder));
  bool waiting = false;
  while (!stop) {
    absl::StatusOr<std::unique_ptr<serve::Predictor>> predictor =
        serve::OpenPredictor(options.folder, opening);
    server->CountFirstOpen(predictor.ok());
    if (predictor.ok()) return predictor;
    const absl::Status& failure = predictor.status();
    const bool is_missing = absl::IsNotFound(failure);
    if (!is_missing && !waiting) {
      if (absl::IsPermissionDenied(failure) || !FixOf(failure).empty()) return failure;
      const FolderSize now = SizeOf(options.folder);
      if (now != size) changed = absl::Now();
      size = now;
      if (absl::Now() - changed > kUntilWhole) {
        return WithFix(
            WithKind(failure, ErrorKind::kBadCheckpoint),
            "export or publish a version again (cistern export serving, cistern publish)");
      }
    }
    if (is_missing && !waiting) {
      const ServedFolder addresses = AddressesOf(*server, options);
      LogWarning(absl::StrCat("waiting for a version in ", options.folder,
                              ", which cistern export serving or cistern publish writes; http=",
                              addresses.http, " grpc=", addresses.grpc, " live, but not ready"));
      waiting = true;
    }
    if (!is_missing && waiting) faults.Report(failure, "waiting for a version that can be opened");
    SleepUnless(&stop, pause);
  }
  return nullptr;
}

// Load balancers see that the server is not ready while it still answers.
void Drain(const ServeOptions& options, const ServeCalls& calls, serve::InferenceServer* server) {
  if (options.drain_seconds == 0) return;
  if (calls.draining) calls.draining();
  server->BeginDrain();
  absl::SleepFor(absl::Seconds(static_cast<double>(options.drain_seconds)));
}

}  // namespace

absl::StatusOr<std::optional<uint64_t>> ServeFolder(const ServeOptions& options,
                                                    const ServeCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckServeOptions(options));
  CISTERN_RETURN_IF_ERROR(CheckServingFolder(options.folder));
  CISTERN_ASSIGN_OR_RETURN(serve::InferenceServerOptions server_options, ServerOptionsOf(options));
  static constexpr std::atomic<bool> kNever{false};
  const std::atomic<bool>& stop = calls.stop != nullptr ? *calls.stop : kNever;
  server_options.stopping = &stop;
  std::unique_ptr<serve::Predictor> predictor;  // outlives the server
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<serve::InferenceServer> server,
                           serve::InferenceServer::Start(server_options));
  CISTERN_ASSIGN_OR_RETURN(predictor, AwaitPredictor(options, server.get(), stop));
  if (predictor == nullptr) return std::nullopt;
  server->Serve(*predictor);
  if (!IsLoopback(options.bind) && options.tls.ca.empty()) {
    LogWarning(absl::StrCat(
        "listening on ", options.bind, ": anyone who reaches these ports can ",
        options.tls.cert.empty() ? "ask for predictions, in the clear" : "ask for predictions"));
  }
  if (calls.ready) {
    ServedFolder served = AddressesOf(*server, options);
    served.model = predictor->name();
    served.commit = predictor->version().commit;
    calls.ready(served);
  }
  while (!stop) absl::SleepFor(absl::Milliseconds(50));
  Drain(options, calls, server.get());
  LogInfo("stopping: requests in flight are answered, new ones are refused");
  if (!server->Stop(kGrace)) LogWarning("predictions still run; waiting for them");
  return predictor->version().commit;
}

nlohmann::ordered_json JsonOf(const ServedFolder& served) {
  return {{"ready", true},
          {"http", served.http},
          {"grpc", served.grpc},
          {"model", served.model},
          {"commit", served.commit}};
}

}  // namespace cistern::app
