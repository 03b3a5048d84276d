// The state and the contents of each server of a fleet, and whether they are one fleet at one
// commit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tls/tls_files.h"
#include "common/wire/planes.h"
#include "proto/control_plane.pb.h"

namespace cistern::app {

struct FleetStatusOptions {
  std::string servers;  // "host:port,host:port"
  TlsFiles tls = {};    // as FleetOptions::tls
  double timeout = 5;   // seconds to wait for an answer
  bool digest = false;  // also digests of the tables: reads every row
};

// The answers of one server. If it did not answer, `reached` is the error.
struct ServerState {
  std::string address;
  absl::Status reached;
  v1::HelloReply hello;
  v1::StatsReply stats;

  // "down", "in pass" or "ready".
  std::string text() const;
};

// A table over all servers that answered. Its digest is the sum of theirs (modulo 2^64).
struct TableTotal {
  std::string name;
  uint64_t rows = 0, rows_in_memory = 0, memory_bytes = 0, digest = 0;
};

struct FleetStatus {
  std::vector<ServerState> servers;  // in the order in which they were named
  bool digest = false;               // whether digests are known
  bool tiered = false;               // a server has a memory limit, so that rows may be in files
  std::vector<TableTotal> tables;    // by name
  std::vector<std::string> differences;
  std::string
      host_fix;  // if one did not answer: UnknownHostFix of the servers, or that of TlsFault

  // kUnavailable, with a fix: a server did not answer. kFailedPrecondition: the servers differ.
  absl::Status outcome() const;
};

// Asks all servers in parallel, so that one that is down does not delay the others; several times,
// because a claim does not reach all of them at once. kInvalidArgument: an invalid address.
absl::StatusOr<FleetStatus> AskFleet(const FleetStatusOptions& options);

// The memory that a server with a memory limit takes at most, as far as measured (docs/sizing.md).
uint64_t PlannedResidentBytes(const v1::StatsReply& stats);

// The status of servers that have been asked.
FleetStatus StatusOf(std::vector<ServerState> servers, bool digest);

// The differences between the servers that answered in facts on which the servers of one fleet
// agree: cluster, numbers of servers and shards, ranks, durability, tables, term, pass, commit.
// Each difference names the addresses. A pass that is being committed is not a difference, nor are
// terms of servers with states of their own that agree in all else.
std::vector<std::string> DifferencesOf(const std::vector<ServerState>& servers);

nlohmann::ordered_json JsonOf(const FleetStatus& status);

}  // namespace cistern::app
