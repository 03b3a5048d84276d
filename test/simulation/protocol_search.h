// Breadth-first search over every state of the protocol model: the first state found that breaks an
// invariant is one of the nearest, so its trace is among the shortest.
//
// States are kept whole and compared whole: none is taken for another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/simulation/protocol_model.h"

namespace cistern {

struct SearchResult {
  uint64_t states = 0;
  uint32_t depth = 0;              // steps to the farthest state
  std::string broken;              // empty: every state holds every invariant
  std::vector<std::string> trace;  // steps to the state that is broken
  bool whole = false;              // every state was visited (or one is broken)
};

// state_limit: gives up beyond it; whole is false then.
SearchResult SearchProtocol(const Rules& rules, uint64_t state_limit);

}  // namespace cistern
