// Breadth-first search over every state of the protocol model. The first state found to violate an
// invariant is among the nearest, so its trace is among the shortest.
//
// The search keeps and compares complete states rather than hashes, so it never confuses two
// states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/simulation/protocol_model.h"

namespace cistern {

struct SearchResult {
  uint64_t states = 0;
  uint32_t depth = 0;              // steps to the farthest state
  std::string broken;              // the violated invariant; empty: none
  std::vector<std::string> trace;  // steps to the violating state
  bool whole = false;              // visited every state, or found a violation
};

// state_limit: the search stops beyond this number of states, and `whole` is false.
SearchResult SearchProtocol(const Rules& rules, uint64_t state_limit);

}  // namespace cistern
