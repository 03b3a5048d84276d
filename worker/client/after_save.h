// What a save or an export of ctr rows does to their statistics.
#pragma once

#include "worker/client/parameter_client.h"

namespace cistern {

// Updates the statistics of all ctr tables on all servers, as after a save of `mode`
// (common/value/accessor/ctr_lifecycle.h), and commits that. Call it once all files of the save are
// on disk, as the only writer (ClaimTerm) since before its rows were read: then the rows that
// change are those that were saved. Errors: ParameterClient::ChangeInPlace.
absl::Status UpdateAfterSave(ParameterClient& client, v1::SaveMode mode, uint32_t day);

}  // namespace cistern
