// The steps that a state allows.
#include "test/simulation/protocol_model.h"

#include <algorithm>
#include <cstring>

#include "test/simulation/protocol_machine.h"

namespace cistern {
namespace {

// Collects the states that steps lead to.
class Steps {
 public:
  Steps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* out)
      : rules_(rules), state_(state), out_(out) {}

  void OfCoordinator(uint32_t k) {
    const CoordinatorState& c = state_.coordinators[k - 1];
    if (c.phase == kIdle) Start(k);
    if (c.phase == kLook && state_.servers[0].up != 0) {
      To({Step::kLookUp, Byte(k)}, [&](Machine& machine, State&) { machine.LookUp(k); });
    }
    if (c.phase == kDecide && !rules_.server_decides) {
      To({Step::kCall, Byte(k), 0, kDecide},
         [&](Machine& machine, State&) { machine.Hear(k, 0, machine.DecideAlone(k), 0); });
    }
    for (uint32_t server = 0; server < kServers; ++server) Calls(k, server);
  }

  void OfServer(uint32_t s) {
    const ServerState& server = state_.servers[s];
    const Step step{Step::kCrash, 0, Byte(s)};
    if (server.up == 0) {
      To({Step::kRestart, 0, Byte(s)}, [&](Machine& machine, State&) { machine.Restart(s); });
      return;
    }
    if (static_cast<int>(state_.crashes) < rules_.crashes) {
      To(step, [&](Machine& machine, State&) { machine.Crash(s); });
    }
    if (server.open == 0 && server.committed < Newest(state_)) {
      To({Step::kCatchUp, 0, Byte(s)}, [&](Machine& machine, State&) { machine.Recover(s); });
    }
  }

  void OfOthers() {
    if (state_.late.kind != kIdle && state_.servers[state_.late.server].up != 0) {
      const Message m = state_.late;
      To({Step::kDeliver, Byte(m.coordinator), Byte(m.server), Byte(m.kind)},
         [&](Machine& machine, State& next) {
           uint32_t reply = 0;
           next.late = Message{};
           machine.Deliver(m, /*answers=*/false, &reply);
         });
    }
    if (state_.deciding.kind != kIdle) {
      const uint32_t k = state_.deciding.coordinator;
      To({Step::kPublishLost, Byte(k)}, [&](Machine& machine, State&) { machine.Publish(); });
      if (state_.answers_decision != 0 && state_.coordinators[k - 1].phase == kDecide) {
        To({Step::kPublish, Byte(k)},
           [&](Machine& machine, State&) { machine.Hear(k, 0, machine.Publish(), 0); });
      }
    }
    if (rules_.rollback && state_.rolled_back == 0 && state_.servers[0].up == 0 &&
        state_.servers[1].up == 0 && Newest(state_) > 0) {
      To({Step::kRollBack}, [&](Machine& machine, State&) { machine.RollBack(); });
    }
  }

 private:
  static uint8_t Byte(uint32_t number) { return static_cast<uint8_t>(number); }

  template <class Act>
  void To(const Step& step, const Act& act) {
    State next = state_;
    Machine machine(rules_, next);
    act(machine, next);
    if (next.deciding.kind == kIdle) next.answers_decision = 0;
    if (rules_.epoch_fence && rules_.server_decides) ForgetFenced(next);
    if (std::memcmp(&next, &state_, sizeof(State)) != 0) out_->emplace_back(step, next);
  }

  // Terms on disk and in memory only grow, so a server's refusal is permanent. Coordinators and
  // messages that every server refuses can have no further effect, and are dropped.
  static void ForgetFenced(State& state) {
    const auto fenced = [&state](uint32_t epoch, uint32_t server) {
      const ServerState& at = state.servers[server];
      return epoch < state.newest_epoch && (at.up == 0 || at.epoch > epoch);
    };
    for (CoordinatorState& c : state.coordinators) {
      if (c.phase == kIdle || c.phase >= kDone || !fenced(c.epoch, 0) || !fenced(c.epoch, 1)) {
        continue;
      }
      c = CoordinatorState{};
      c.phase = kFailed;
    }
    if (state.late.kind != kIdle && fenced(state.late.epoch, state.late.server)) {
      state.late = Message{};
    }
  }

  // Coordinators start in turn, when both servers answer Hello, with a term above all that these
  // have seen.
  void Start(uint32_t k) {
    if (static_cast<int>(k) > rules_.coordinators ||
        (k > 1 && state_.coordinators[k - 2].phase == kIdle) || state_.servers[0].up == 0 ||
        state_.servers[1].up == 0) {
      return;
    }
    const uint32_t epoch = std::max(state_.servers[0].epoch, state_.servers[1].epoch) + 1u;
    if (epoch > 3) return;
    To({Step::kStart, Byte(k)}, [&](Machine&, State& next) {
      next.coordinators[k - 1].epoch = epoch & 3;
      next.coordinators[k - 1].phase = kClaim;
    });
  }

  void Calls(uint32_t k, uint32_t server) {
    const Message m = Machine(rules_, const_cast<State&>(state_)).Next(k, server);
    if (m.kind == kIdle) return;
    for (const bool lost : {false, true}) {
      To({lost ? Step::kCallLost : Step::kCall, Byte(k), Byte(server), Byte(m.kind)},
         [&](Machine& machine, State&) {
           uint32_t reply = 0;
           const Answer answer = machine.Deliver(m, !lost, &reply);
           if (!lost) machine.Hear(k, server, answer, reply);
         });
    }
    if (!rules_.late_message || state_.late_used != 0) return;
    To({Step::kTakeDown, Byte(k), Byte(server), Byte(m.kind)}, [&](Machine&, State& next) {
      next.late = m;
      next.late_used = 1;
    });
  }

  const Rules& rules_;
  const State& state_;
  std::vector<std::pair<Step, State>>* const out_;
};

}  // namespace

State FirstState() {
  State state;
  std::memset(static_cast<void*>(&state), 0, sizeof(state));
  for (ServerState& server : state.servers) server.up = 1;
  return state;
}

void AddSteps(const Rules& rules, const State& state, std::vector<std::pair<Step, State>>* steps) {
  Steps add(rules, state, steps);
  for (uint32_t k = 1; k <= kCoordinators; ++k) add.OfCoordinator(k);
  for (uint32_t server = 0; server < kServers; ++server) add.OfServer(server);
  add.OfOthers();
}

}  // namespace cistern
