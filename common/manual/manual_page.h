// Pages for man, as groff reads them.
#pragma once

#include <string>

#include "common/manual/manual.h"

namespace cistern {

// The page's name: "cistern-data-convert".
std::string PageName(const CommandManual& command);

// One command's page. program: "cistern 0.1.0". It holds no date, so that the same program gives
// the same bytes.
std::string ManualPage(const CommandManual& command, const std::string& program);

}  // namespace cistern
