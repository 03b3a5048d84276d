// The files of a fleet's commits, read through its servers: for a machine that does not see their
// disks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/io/file_system.h"
#include "worker/client/parameter_client.h"

namespace cistern::app {

// This machine's files, and below root() the manifests of server 0 and the row files of all
// servers, so that StateFolder and what reads it works on a fleet. Nothing is written there.
// Readers check what they read as they do on disks.
//
// Errors below root() name the server, and have the codes of files and those of calls
// (kUnavailable). kNotFound: a later commit may have removed the file. kUnimplemented, with a fix:
// the servers are older.
//
// Threads: any thread.
class FleetFiles : public LocalFileSystem {
 public:
  // client: outlives this. Its servers keep durable commits.
  explicit FleetFiles(ParameterClient& client);

  // The place of the state (FindState), "fleet://HOST:PORT" with the first server.
  const std::string& root() const { return root_; }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override;
  absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) override;
  absl::StatusOr<bool> Exists(const FilePath& path) override;

 private:
  const std::vector<ServerLink> servers_;
  const v1::Identity identity_;
  const std::string root_, prefix_;
};

}  // namespace cistern::app
