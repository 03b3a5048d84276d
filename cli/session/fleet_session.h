// The servers that a command works with: a fleet over gRPC, or servers inside this process.
#pragma once

#include <memory>
#include <string>

#include "cli/terminal/command_line.h"
#include "common/base/status.h"
#include "worker/client/parameter_client.h"

namespace cistern {

struct FleetFlags {
  std::string servers;  // "host:port,host:port"; empty: embedded
  std::string cluster = "cistern";
  uint64_t embedded_servers = 1;
  double connect_timeout = 20;  // seconds
  uint32_t worker = 0;          // rank of this process among the workers of a run
  bool take_over = false;
  std::string program = "cistern";  // as other writers' messages name this one
};

// --servers, --cluster, --connect-timeout; and --embedded-servers where servers may be embedded.
void AddFleetFlags(Command& command, FleetFlags* flags, bool may_embed);

// --take-over, of commands that claim the fleet as its only writer.
void AddTakeOverFlag(Command& command, FleetFlags* flags);

// Connected servers, and the client that speaks to them; embedded ones live and die with it. Either
// way the caller drives the same planes.
//
// Threads: as ParameterClient.
class FleetSession {
 public:
  virtual ~FleetSession() = default;
  virtual ParameterClient& client() = 0;

  // kInvalidArgument: an address or a number that makes no sense. kUnavailable with a fix: a server
  // that does not answer. kFailedPrecondition: servers that do not belong together.
  // state_root: embedded servers keep their commits in its folder state/; empty: in memory only.
  static absl::StatusOr<std::unique_ptr<FleetSession>> Open(const FleetFlags& flags,
                                                            const std::string& state_root = "");
};

// Rows that the fleet holds, over all sparse tables; 0 too where no tables were made yet.
absl::StatusOr<uint64_t> RowsOn(ParameterClient& client);

// --day: today's number, for tables whose rows keep days (day_id_decay).
void AddDayFlag(Command& command, uint64_t* day);
absl::Status CheckDayFlag(uint64_t day);

// Adds to an error of `servers` what a person can do: to one that says they cannot be reached.
absl::Status WithFleetFix(const absl::Status& status, const FleetFlags& flags);

}  // namespace cistern
