// The columns of a table under the names that a recipe has for them, where only the case of letters
// differs: databases and the tools that export from them write names in upper or in lower case.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// The one of `names` that differs from `name` at most in the case of ASCII letters and in spaces
// around it; null: none, or several of them.
const std::string* FindInAnyCase(absl::string_view name, const std::vector<std::string>& names);

// `columns`, with each that is known in another case only replaced by the known name. A name that
// `columns` has as it is stays alone with it, and so does one that fits two names.
std::vector<std::string> KnownNames(const std::vector<std::string>& columns,
                                    const std::vector<std::string>& known);

// `table` with these names.
std::unique_ptr<TextTable> WithKnownNames(std::unique_ptr<TextTable> table,
                                          const std::vector<std::string>& known);

}  // namespace cistern::data
