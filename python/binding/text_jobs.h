// Text as data: tables that become models, and conversions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/data/table_model.h"
#include "python/binding/arrays.h"
#include "python/binding/job_run.h"
#include "python/binding/keywords.h"

namespace cistern::python {

// The bytes of paths.
std::vector<std::string> TextsOf(const std::vector<std::filesystem::path>& paths);

// Reads the keywords of a table: those of app::TableOptions and its wishes.
app::TableOptions ReadTableOptions(Keywords* keywords);

// Tables that are prepared for `listener`, which outlives the result.
app::TableCalls TableCallsOf(const Listener& listener);

void BindTextJobs(nb::module_& module);

}  // namespace cistern::python
