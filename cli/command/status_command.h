// cistern status: reports the state and contents of each server of a fleet.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/command_line.h"
#include "common/wire/planes.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// The answers of one server. If it did not answer, `reached` is the error.
struct ServerState {
  std::string address;
  absl::Status reached;
  v1::HelloReply hello;
  v1::StatsReply stats;
};

// Asks one server.
ServerState AskServer(const ServerLink& server, bool digest);

// The differences between the servers that answered in facts on which the servers of one fleet
// agree: cluster, numbers of servers and shards, ranks, durability, tables, term, pass, commit.
// Each difference names the addresses. A pass that is being committed is not a difference.
std::vector<std::string> DifferencesOf(const std::vector<ServerState>& servers);

// Reports one row per server, in the given order, and the sums over those that answered. The
// outcome is kUnavailable if any server did not answer, else kFailedPrecondition if the servers
// differ.
Report ReportOf(const std::vector<ServerState>& servers, bool digest);

void AddStatusCommand(Command& root);

}  // namespace cistern
