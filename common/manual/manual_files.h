// A program's manual pages and completions as files in the places where systems look for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/manual/manual.h"

namespace cistern {

struct ManualFile {
  std::string path;  // below a folder `share`: "man/man1/cistern-train.1"
  std::string text;
};

// One page per command, and a completion for each of bash, zsh and fish. program: its name and
// version, "cistern 0.1.0".
std::vector<ManualFile> ManualFiles(const CommandManual& manual, const std::string& program);

// What every program does with the arguments `--manual DIR`: writes these files below DIR. nullopt
// if the arguments say anything else. Errors: those of NewFile.
std::optional<absl::Status> WriteManual(const CLI::App& app, const std::string& program, int argc,
                                        const char* const* argv, FileSystem& files);

}  // namespace cistern
