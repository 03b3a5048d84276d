// Where rows are, as users write it: the path of a state, a run or a saved model, and of a state
// perhaps one commit: "runs/a/state@12".
#pragma once

#include <cstdint>
#include <string>

namespace cistern {

struct RowsPlace {
  std::string path;
  uint64_t commit = 0;  // 0: none was named; of a state, the newest is meant
};

// '@' is a legal character of paths. It begins a commit only if digits follow it to the end of the
// last name, and if nothing on this machine has the whole text as its path.
RowsPlace ParseRowsPlace(const std::string& text);

}  // namespace cistern
