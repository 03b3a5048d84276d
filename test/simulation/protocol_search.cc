#include "test/simulation/protocol_search.h"

#include <algorithm>
#include <cstring>

#include "common/base/hash.h"

namespace cistern {
namespace {

// The set of states found so far, in the order of their distance.
class StateSet {
 public:
  StateSet() : slots_(size_t{1} << 20, kFree) {}

  // True if the state is new.
  bool Add(const State& state, uint32_t parent) {
    if (states_.size() * 2 > slots_.size()) Grow();
    const size_t slot = Find(state);
    if (slots_[slot] != kFree) return false;
    slots_[slot] = static_cast<uint32_t>(states_.size());
    states_.push_back(state);
    parents_.push_back(parent);
    return true;
  }
  size_t size() const { return states_.size(); }
  const State& operator[](size_t index) const { return states_[index]; }
  uint32_t parent(size_t index) const { return parents_[index]; }

 private:
  static constexpr uint32_t kFree = ~uint32_t{0};

  size_t Find(const State& state) const {
    size_t slot = HashBytes(&state, sizeof(state)) & (slots_.size() - 1);
    while (slots_[slot] != kFree &&
           std::memcmp(&states_[slots_[slot]], &state, sizeof(state)) != 0) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  void Grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (size_t i = 0; i < states_.size(); ++i) {
      slots_[Find(states_[i])] = static_cast<uint32_t>(i);
    }
  }

  std::vector<uint32_t> slots_;
  std::vector<State> states_;
  std::vector<uint32_t> parents_;
};

std::vector<std::string> TraceTo(const Rules& rules, const StateSet& states, size_t index) {
  std::vector<std::string> trace;
  std::vector<std::pair<Step, State>> steps;
  for (; index != 0; index = states.parent(index)) {
    steps.clear();
    AddSteps(rules, states[states.parent(index)], &steps);
    for (const auto& [step, state] : steps) {
      if (std::memcmp(&state, &states[index], sizeof(State)) != 0) continue;
      trace.push_back(Describe(step));
      break;
    }
  }
  std::reverse(trace.begin(), trace.end());
  return trace;
}

}  // namespace

SearchResult SearchProtocol(const Rules& rules, uint64_t state_limit) {
  SearchResult result;
  StateSet states;
  states.Add(FirstState(), 0);
  std::vector<std::pair<Step, State>> steps;
  size_t level_end = 1;
  for (size_t at = 0; at < states.size() && states.size() < state_limit; ++at) {
    if (at == level_end) {
      ++result.depth;
      level_end = states.size();
    }
    steps.clear();
    AddSteps(rules, State(states[at]), &steps);
    for (const auto& [step, next] : steps) {
      if (!states.Add(next, static_cast<uint32_t>(at))) continue;
      result.broken = BrokenInvariant(next);
      if (result.broken.empty()) continue;
      result.trace = TraceTo(rules, states, states.size() - 1);
      result.states = states.size();
      result.whole = true;
      return result;
    }
  }
  result.states = states.size();
  result.whole = states.size() < state_limit;
  return result;
}

}  // namespace cistern
