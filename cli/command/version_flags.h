// Flags that the commands which write a version for serving share.
#pragma once

#include <string>

#include "app/export/version_options.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// Adds --out, --precision, --keep, --recipe and --name. precision: the word (PrecisionOf).
void AddVersionFlags(Command& command, app::VersionOptions* options, std::string* precision);

// What an operator should know about the name of a version: it differs from that of the model,
// or from that of the version before. Empty: neither.
std::string NameNote(const ServingWritten& written, const std::string& root);

}  // namespace cistern::cli
