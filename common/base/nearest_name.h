// The nearest of a set of names to a misspelt one: "did you mean".
#pragma once

#include <string>
#include <vector>

namespace cistern {

// Edits (insert, delete, replace one character, swap two neighbours) that turn a into b, letters'
// case ignored (optimal string alignment; Damerau, 1964).
size_t EditDistance(const std::string& a, const std::string& b);

// The candidate nearest to `word`; the first of several. Empty if none is near: more than a third
// of its characters (at least two edits) would have to change.
std::string NearestName(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean 'batchsize'?", or "; known: a, b, c" where nothing is near, or "" for no
// candidates.
std::string Suggest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace cistern
