// The control calls about files below a server's data_dir: saved models, files of commits.
#pragma once

#include <map>
#include <string>

#include "common/io/files_below.h"
#include "proto/control_plane.pb.h"
#include "server/service/node_state.h"

namespace cistern::server {

// Threads: any thread. The duration of Save and Load grows with the tables.
class FileService {
 public:
  // files: the disk; outlives this. data_dir: if empty, all calls are refused.
  FileService(NodeState* state, FileSystem* files, std::string data_dir);

  const std::string& data_dir() const { return data_dir_; }
  // Writes this server's shards to files, and reads them back.
  absl::Status Save(const v1::SaveRequest& request, v1::SaveReply* reply);
  absl::Status Load(const v1::LoadRequest& request, v1::LoadReply* reply);
  // For tools on machines that do not see this server's disk.
  absl::Status ReadState(const v1::ReadStateRequest& request, v1::ReadStateReply* reply);

 private:
  // data_dir/name. kFailedPrecondition without a data_dir; kInvalidArgument for an unsafe name.
  absl::StatusOr<std::string> Folder(const std::string& name);

  NodeState* const state_;
  const std::string data_dir_;
  FilesBelow files_;  // those in data_dir_
  // By model name; for the saves of this process.
  std::map<std::string, uint64_t> save_tickets_ ABSL_GUARDED_BY(state_->job_mutex);
};

}  // namespace cistern::server
