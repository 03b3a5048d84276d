// Finds the known name nearest to a misspelt one, for "did you mean" hints.
#pragma once

#include <string>
#include <vector>

namespace cistern {

// The number of edits (insert, delete or replace one character, or swap two neighbours) that turn a
// into b, ignoring case (optimal string alignment; Damerau, 1964).
size_t EditDistance(const std::string& a, const std::string& b);

// The candidate nearest to `word`, the first one on a tie. Empty if no candidate is near: more than
// a third of the word's characters (and more than two edits) would have to change.
std::string NearestName(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean 'batchsize'?", or "; known: a, b, c" if nothing is near, or "" without
// candidates.
std::string Suggest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace cistern
