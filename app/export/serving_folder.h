// The versions of a serving folder: listed, verified, switched.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/serving/serving_version.h"

namespace cistern::app {

struct ServingListing {
  ServingHead head;                      // without a folder if HEAD is corrupt or missing
  std::vector<ServingVersion> versions;  // sorted by name
  std::vector<std::string> damaged;      // names of those whose description is corrupt

  const ServingVersion* served() const;  // null: HEAD names none of them
};

// kInvalidArgument, with a fix: it is no serving folder.
absl::StatusOr<ServingListing> ListServing(const std::string& root);

// Sums over the tables of a version, and the bytes of all its files.
struct ServingSize {
  uint64_t rows = 0, digest = 0, bytes = 0;
  size_t layers = 0;  // of the table that has most
};
ServingSize SizeOf(const ServingVersion& version);

nlohmann::ordered_json JsonOf(const ServingListing& listing);

// Reads every byte of all versions, and opens the served one as a server would. Returns what was
// verified. Of kind kBadCheckpoint, with a fix: a version is damaged or missing; if it is the
// served one, the options are publish.once and serving.rollback.to.
absl::StatusOr<ServingListing> VerifyServing(const std::string& root);

struct ServingRollback {
  ServingVersion version;  // that is served now
  std::string from;        // the folder of the one before; empty: none was
  std::string from_name;   // the name of its model; empty: unknown
};

// Serves an older version: running servers switch to it. to: a version or a commit; empty: the
// version before the served one. Waits up to 30 seconds for a publisher that writes.
//
// kInvalidArgument, with a fix: there is no such version; with the option to=VERSION: HEAD is
// missing or damaged, so that none is the one before. Of kind kBadCheckpoint: there is no version,
// or it is damaged (option to).
absl::StatusOr<ServingRollback> RollBackServing(const std::string& root, const std::string& to);

}  // namespace cistern::app
