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
  std::string program = "cistern";  // the name of this writer in other writers' messages
};

// Adds --servers, --cluster and --connect-timeout; with `may_embed` also --embedded-servers.
void AddFleetFlags(Command& command, FleetFlags* flags, bool may_embed);

// Adds --take-over, for commands that claim the fleet as its only writer.
void AddTakeOverFlag(Command& command, FleetFlags* flags);

// Connected servers and their client. Embedded servers are destroyed with the session. The caller
// uses the same planes for both kinds.
//
// Threads: same as ParameterClient.
class FleetSession {
 public:
  virtual ~FleetSession() = default;
  virtual ParameterClient& client() = 0;

  // Connects to flags.servers, or starts embedded servers if it is empty.
  //
  // state_root: embedded servers keep their commits in its folder state/; empty: in memory only.
  // kInvalidArgument: an invalid address or number. kUnavailable, with a fix: a server does not
  // answer. kFailedPrecondition: the servers do not belong to one fleet.
  static absl::StatusOr<std::unique_ptr<FleetSession>> Open(const FleetFlags& flags,
                                                            const std::string& state_root = "");
};

// The number of rows on the fleet, summed over all sparse tables; 0 before tables are created.
absl::StatusOr<uint64_t> RowsOn(ParameterClient& client);

// Adds --day: today's day number, for tables whose rows record days (day_id_decay).
void AddDayFlag(Command& command, uint64_t* day);
absl::Status CheckDayFlag(uint64_t day);

// What to do about the hosts of `servers` (host:port,...) that the name service does not know; ""
// if it knows all. Looks them up: for errors.
std::string UnknownHostFix(const std::string& servers);

// Attaches a fix to an error that means a server cannot be reached; other errors stay unchanged.
absl::Status WithFleetFix(const absl::Status& status, const FleetFlags& flags);

}  // namespace cistern
