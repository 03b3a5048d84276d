// The tables of text that a run was given, by their bytes: a day that is given twice counts twice.
#pragma once

#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

// The list, in the folder of a run: a line for each file, with the XXH3 of its bytes (16
// hexadecimal digits), a space and its path; an empty line before the files of each later command.
// Files of object stores, which would take long to read, and empty ones are left out.
inline constexpr char kTablesFile[] = "tables.txt";

// Begins the list of a run with the table that it was made of. Errors of TableFiles and of writing.
absl::Status ListFirstTable(const std::string& out, const std::string& table,
                            const JobCalls& calls);

// The paths in the list, each once; none without a list.
std::vector<std::string> GivenTables(const std::string& out);

// Notes the files of `tables` whose bytes the run was given before, and adds all of them to the
// list. The newest ones may be given again: a command that was interrupted is repeated, and one
// that has finished does nothing then. Errors as ListFirstTable.
absl::Status NoteRepeatedTables(const std::string& out, const std::vector<std::string>& tables,
                                const JobCalls& calls);

}  // namespace cistern::app
