// The servers that a job works with: a fleet over gRPC, or servers inside this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tls/tls_files.h"
#include "common/trace/trace_file.h"
#include "server/commit/pass_cache.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

struct FleetOptions {
  std::string servers;  // "host:port,host:port"; empty: embedded
  std::string cluster = "cistern";
  TlsFiles tls = {};  // what this program shows servers behind TLS, and their authority
  uint64_t embedded_servers = 1;
  // Of each embedded server that keeps its commits (ServerOptions::memory_limit_bytes); 0: none.
  double memory_limit_mb = 0;  // MiB
  std::vector<server::PassCacheOptions> pass_caches =
      {};                       // of the same (ServerOptions::pass_caches)
  double connect_timeout = 20;  // seconds
  uint32_t worker = 0;          // rank of this process among the workers of a run
  bool take_over = false;
  std::string program = "cistern";  // the name of this writer in other writers' messages
  std::string run;                  // the id of the training run, for manifests; empty: none
  TraceFile* trace = nullptr;  // receives every call to servers; not owned, outlives the session
};

// Connected servers and their client. Embedded servers are destroyed with the session. The caller
// uses the same planes for both kinds.
//
// Threads: same as ParameterClient.
class FleetSession {
 public:
  virtual ~FleetSession() = default;
  virtual ParameterClient& client() = 0;

  // Connects to options.servers, or starts embedded servers if it is empty.
  //
  // state_root: embedded servers keep their commits in its folder state/; empty: in memory only.
  // kInvalidArgument: an invalid address or number. kUnavailable, with a fix: a server does not
  // answer. kFailedPrecondition: the servers do not belong to one fleet.
  static absl::StatusOr<std::unique_ptr<FleetSession>> Open(const FleetOptions& options,
                                                            const std::string& state_root = "");
};

// The figures of all servers, by rank. digest: with the digests of their tables, which takes a
// while.
absl::StatusOr<std::vector<v1::StatsReply>> StatsOn(ParameterClient& client, bool digest = false);
// The number of rows in all sparse tables of a server; 0 before tables are created.
uint64_t RowsOf(const v1::StatsReply& stats);
// The same, summed over the servers of the fleet.
absl::StatusOr<uint64_t> RowsOn(ParameterClient& client);

// kInvalidArgument unless `day` is a day number, for tables whose rows record days (day_id_decay).
absl::Status CheckDay(uint64_t day);

// What is wrong between the certificates of these servers and those of this program, with a fix; OK
// if nothing is, or a server is not reached at all. Connects to them: for errors.
absl::Status TlsFault(const std::string& servers, const TlsFiles& tls);

// What to do about the hosts of `servers` (host:port,...) that the name service does not know; ""
// if it knows all. Looks them up: for errors.
std::string UnknownHostFix(const std::string& servers);

// The option (WithOptions) that shows the state of these servers.
std::string StatusOption(const FleetOptions& fleet);

// Attaches a fix to an error that means a server cannot be reached; other errors stay unchanged.
absl::Status WithFleetFix(const absl::Status& status, const FleetOptions& fleet);

}  // namespace cistern::app
