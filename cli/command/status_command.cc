#include "cli/command/status_command.h"

#include <algorithm>
#include <memory>

#include "app/fleet/fleet_session.h"
#include "cli/terminal/exit_code.h"
#include "common/base/thread_pool.h"
#include "common/rpc/fleet.h"

namespace cistern {
namespace {

constexpr size_t kAskersMax = 64;
constexpr char kCaller[] = "cistern status";
constexpr int kAsks = 3;  // asks again, because a claim does not reach all servers at once

struct StatusFlags {
  std::string servers;
  double timeout = 5;
  bool digest = false;
};

// Asks all servers in parallel, so that one that is down does not delay the others.
absl::StatusOr<Report> RunStatus(const StatusFlags& flags) {
  RemoteOptions options;
  options.call_timeout = absl::Seconds(flags.timeout);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                           ConnectFleet(flags.servers, options));
  const std::vector<ServerLink> links = fleet->links();
  std::vector<ServerState> states(links.size());
  ThreadPool pool(static_cast<int>(std::min<size_t>(links.size(), kAskersMax)));
  for (int ask = 0; ask < kAsks; ++ask) {
    pool.ParallelFor(links.size(),
                     [&](size_t i) { states[i] = AskServer(links[i], flags.digest); });
    if (DifferencesOf(states).empty()) break;
  }
  Report report = ReportOf(states, flags.digest);
  if (absl::IsUnavailable(report.outcome)) {
    report.outcome = WithFix(report.outcome, app::UnknownHostFix(flags.servers));
  }
  return report;
}

}  // namespace

ServerState AskServer(const ServerLink& server, bool digest) {
  ServerState state;
  state.address = server.name;
  v1::HelloRequest hello;
  hello.set_client(kCaller);
  state.reached = server.control->Hello(hello, &state.hello);
  if (!state.reached.ok()) return state;
  v1::StatsRequest request;
  *request.mutable_identity() = state.hello.identity();
  request.set_digest(digest);
  state.reached = server.control->Stats(request, &state.stats);
  return state;
}

void AddStatusCommand(Command& root) {
  auto flags = std::make_shared<StatusFlags>();
  Command& command = root.Add("status", "Prints the state and contents of each server of a fleet.",
                              "cistern status --servers 127.0.0.1:7700,127.0.0.1:7701");
  command.Flag("--servers", &flags->servers,
               {"HOST:PORT,...", "The servers to ask.", "--servers 127.0.0.1:7700,127.0.0.1:7701",
                kRequired});
  command.Switch("--digest", &flags->digest,
                 {"",
                  "Also prints a digest of every table, which depends on its rows only, not on the "
                  "servers that hold them. Reads every row.",
                  "--digest"});
  command.Flag("--timeout", &flags->timeout,
               {"SECONDS", "How long to wait for an answer.", "--timeout 2"});
  command.Does([flags](Console&) { return RunStatus(*flags); });
}

}  // namespace cistern
