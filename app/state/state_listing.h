// The commits and saved models of a data_dir, and whether each is whole.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/saved_model/model_folder.h"
#include "proto/checkpoint.pb.h"

namespace cistern::app {

struct ListedCommit {
  uint64_t commit = 0;
  std::optional<v1::Manifest> manifest;  // nullopt: it cannot be read
  // OK: the manifest can be read, and every file that it names exists with its size.
  absl::Status whole;
  // Of a local state: the server whose files alone were looked for.
  std::optional<uint32_t> server;

  uint64_t bytes() const;  // of all files
};

struct ListedModel {
  std::string name;
  std::vector<ModelPart> parts;  // empty: they cannot be read
  uint64_t files = 0, bytes = 0, rows = 0;
  absl::Status whole;
};

struct StateListing {
  std::string path;                   // as given
  std::optional<std::string> state;   // the folder of the commits
  std::vector<ListedCommit> commits;  // the oldest first
  std::vector<ListedModel> models;

  // The first thing that is not whole, of kind kBadCheckpoint; OK: all are.
  absl::Status outcome() const;
};

// Lists a data_dir of servers, or the state folder in it; nothing of its rows is read.
// kInvalidArgument, with a fix: the folder holds neither commits nor saved models.
absl::StatusOr<StateListing> ListState(const std::string& path);

nlohmann::ordered_json JsonOf(const StateListing& listing);

}  // namespace cistern::app
