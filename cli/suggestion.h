// "Did you mean": the known name nearest to a misspelt one.
#pragma once

#include <string>
#include <vector>

namespace cistern {

// The name of `known` with the fewest edits (insert, remove, replace, swap of neighbours) to `word`;
// the first one of equals. Empty if that takes more than a third of the word's letters, rounded up.
std::string NearestName(const std::string& word, const std::vector<std::string>& known);

}  // namespace cistern
