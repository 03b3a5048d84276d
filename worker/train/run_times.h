// Where the time of a training goes: what its device waited for and how long it computed, in each
// pass and in the whole run.
#pragma once

#include "common/base/steady_time.h"
#include "worker/pass/idle_times.h"

namespace cistern {

// Threads: one at a time.
class RunTimes {
 public:
  struct Shares {
    IdleTimes idle;  // fractions of the period
    IdleTimes idle_seconds;
    BusyTime busy;
  };

  // begin: of the job. The run lasts from its first step to its last commit.
  explicit RunTimes(SteadyTime begin) : begin_(begin), end_(begin), pass_{begin}, run_{begin} {}

  void Start(SteadyTime first_step) { pass_ = run_ = {first_step}; }
  void End(SteadyTime last_commit) { end_ = last_commit; }
  // Of the current pass, and of the run.
  void AddIdle(const IdleTimes& idle) {
    pass_.idle += idle;
    run_.idle += idle;
  }
  void AddBusy(double seconds) {
    pass_.busy_seconds += seconds;
    run_.busy_seconds += seconds;
  }
  // Returns the shares of the pass that ends; the next one begins.
  Shares EndPass(SteadyTime now) {
    const Shares shares = pass_.Until(now);
    pass_ = {now};
    return shares;
  }
  // Of the run; zeros before End.
  Shares shares() const { return run_.Until(end_); }
  double first_step_seconds() const { return SecondsBetween(begin_, run_.begin); }

 private:
  struct Period {
    SteadyTime begin;
    IdleTimes idle = {};  // seconds
    double busy_seconds = 0;

    Shares Until(SteadyTime end) const {
      const double seconds = SecondsBetween(begin, end);
      return {idle.Over(seconds), idle, BusyTime::Over(busy_seconds, seconds)};
    }
  };

  const SteadyTime begin_;
  SteadyTime end_;
  Period pass_, run_;
};

}  // namespace cistern
