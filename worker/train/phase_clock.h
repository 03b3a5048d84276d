// What the training thread spends its time on.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

namespace cistern {

enum class Phase { kRead, kTrain, kCommit, kEvaluate, kSave };
inline constexpr size_t kPhases = 5;

// The name in metrics.jsonl: "read" (waiting for the next pass: its data and its rows), "train",
// "commit", "evaluate", "save".
inline const char* PhaseName(Phase phase) {
  constexpr std::array<const char*, kPhases> kNames = {"read", "train", "commit", "evaluate",
                                                       "save"};
  return kNames[static_cast<size_t>(phase)];
}

// Seconds by phase.
using PhaseSeconds = std::array<double, kPhases>;

// Threads: one at a time.
class PhaseClock {
 public:
  // Ends the current phase and begins `phase`; nullopt: none. Returns the phase that ended.
  std::optional<Phase> Enter(std::optional<Phase> phase) {
    const auto now = std::chrono::steady_clock::now();
    if (phase_) {
      seconds_[static_cast<size_t>(*phase_)] += std::chrono::duration<double>(now - since_).count();
    }
    since_ = now;
    const std::optional<Phase> ended = phase_;
    phase_ = phase;
    return ended;
  }
  // The seconds since the last call, by phase; the current phase continues.
  PhaseSeconds Take() {
    Enter(phase_);
    const PhaseSeconds taken = seconds_;
    seconds_ = {};
    return taken;
  }

 private:
  std::optional<Phase> phase_;
  std::chrono::steady_clock::time_point since_;
  PhaseSeconds seconds_ = {};
};

}  // namespace cistern
