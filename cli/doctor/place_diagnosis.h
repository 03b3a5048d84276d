// What is wrong with folders and ports.
#pragma once

#include "cli/doctor/diagnosis.h"

namespace cistern::cli {

// One finding about each folder: whether it can be written, and what is wrong with it.
std::vector<Finding> DiagnoseFolder(const FolderFacts& folder);

Finding DiagnosePort(const PortFacts& port, const MachineFacts& facts);

}  // namespace cistern::cli
