// Gives a server that was restored from a copy the manifests that the copy did not have yet.
#pragma once

#include <cstdint>
#include <string>

#include "app/state/pull_state.h"
#include "common/base/status.h"

namespace cistern::app {

struct AdoptManifestOptions {
  std::string from;     // a manifest, or the data_dir of the server that has it
  std::string to;       // the data_dir of the server that lacks it, stopped
  uint64_t server = 0;  // its rank
};

// Gives a server the newest manifest of another one: for server 0, whose folder was restored
// without its last manifests. Its own row files must be there. The next term is above the
// manifest's.
//
// kDataLoss names the files that are missing. kFailedPrecondition: a server uses the folder, which
// may also be newer. Repeating it changes nothing.
absl::StatusOr<PulledState> AdoptManifest(const AdoptManifestOptions& options);

}  // namespace cistern::app
