// Reads the facts about folders, disks and ports.
#pragma once

#include <string>

#include "cli/doctor/machine_facts.h"

namespace cistern::cli {

// Writes, syncs, locks and removes a small file in the folder, five times. A folder that does not
// exist is judged by the nearest one above it that does. Nothing else is changed.
FolderFacts ReadFolder(const std::string& path, bool is_data_folder);

// Briefly listens on the port of the loopback address.
PortFacts ReadPort(uint64_t port, bool named);

}  // namespace cistern::cli
