// cistern status: what each server of a fleet holds and does.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "common/wire/planes.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// What one server answered; `reached` says why it did not.
struct ServerState {
  std::string address;
  absl::Status reached;
  v1::HelloReply hello;
  v1::StatsReply stats;
};

// Asks one server.
ServerState AskServer(const ServerLink& server, bool digest);

// In what the servers that answered differ where those of one fleet do not: cluster, numbers of
// servers and shards, ranks, durability, tables, epoch, pass, commit; each with the addresses. A
// pass that the servers are just committing is not a difference.
std::vector<std::string> DifferencesOf(const std::vector<ServerState>& servers);

// One row a server, in the order given, and the sums over those that answered. The outcome is
// kUnavailable if any did not, else kFailedPrecondition if they differ.
Report ReportOf(const std::vector<ServerState>& servers, bool digest);

void AddStatusCommand(Command& root);

}  // namespace cistern
