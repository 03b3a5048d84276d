// How long a device waited between passes, and for what; how long it computed.
#pragma once

#include <algorithm>
#include <chrono>

#include "common/base/steady_time.h"

namespace cistern {

// Seconds during which the training thread had no step to run. An evaluation does not count as
// waiting.
struct IdleTimes {
  double data = 0;        // samples are read, their keys and rows found
  double pull = 0;        // rows are pulled
  double carry_over = 0;  // rows are copied from the previous pass
  double commit = 0;      // an earlier pass is committed

  // As fractions of `seconds`.
  IdleTimes Over(double seconds) const {
    const double scale = seconds > 0 ? 1 / seconds : 0;
    return {data * scale, pull * scale, carry_over * scale, commit * scale};
  }
  double total() const { return data + pull + carry_over + commit; }
  bool operator==(const IdleTimes&) const = default;
  IdleTimes& operator+=(const IdleTimes& more) {
    data += more.data;
    pull += more.pull;
    carry_over += more.carry_over;
    commit += more.commit;
    return *this;
  }
};

// The time in which the device computed training steps, from the start to the end of each, by the
// device's clock. Idle times are those of the training thread: what is in neither is lost inside a
// pass (a step that is launched late), at its end, or in evaluations.
struct BusyTime {
  double seconds = 0;
  double share = 0;  // of the same period as that of the idle times

  static BusyTime Over(double busy, double seconds) {
    return {busy, seconds > 0 ? busy / seconds : 0};
  }
};

// When a pass had its data, could pull its rows, and had them.
struct PrepareTimes {
  SteadyTime data_end, commit_end, pull_end;

  // What a wait from `begin` until the pass was ready waited for.
  IdleTimes Waited(SteadyTime begin) const {
    IdleTimes idle;
    idle.data = SecondsBetween(begin, data_end);
    idle.commit = SecondsBetween(std::max(begin, data_end), commit_end);
    idle.pull = SecondsBetween(std::max(begin, commit_end), pull_end);
    return idle;
  }
};

}  // namespace cistern
