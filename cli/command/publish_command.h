// cistern publish: keeps a serving folder at the newest commit of a training.
#pragma once

#include <string>

#include "app/export/publish.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

// "published commit 7: 300 rows, 12 KB in 0.1 s".
std::string PublishedText(const ServingWritten& written, double seconds);

// What the serving folder serves: "commit 7" or "no version".
std::string ServedText(const app::Published& published);

void AddPublishCommand(Command& root);

}  // namespace cistern::cli
