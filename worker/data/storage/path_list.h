// What a comma means in a path, and lists of paths.
#pragma once

#include <string>
#include <vector>

namespace cistern::data {

// The paths of "a.csv,b.csv". A comma is also a legal character of paths ("lr=0.1,dim=8/a.csv"), so
// it separates only where that leaves a path on its left that exists, or where no longer path does:
// the whole text comes first, then parts are joined as long as they lead nowhere. Commas in braces
// never separate. Remote paths are looked up only if something other than a remote path follows.
std::vector<std::string> SplitPaths(const std::string& text);

// Whether something has this path here or, for a remote path, there.
bool PathExists(const std::string& path);

}  // namespace cistern::data
