// The processor time and page faults of a benchmark's threads.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace cistern {

// What a thread, or the process, has used: these counts are comparable where delays are not, on a
// machine that other programs use.
struct Work {
  double cpu = 0;                  // seconds
  double kernel = 0;               // seconds of `cpu` in system calls
  int64_t faults = 0, waited = 0;  // page faults; times that another thread took the processor

  static Work Of(int who) {
    rusage usage = {};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    const double kernel = seconds(usage.ru_stime);
    return {seconds(usage.ru_utime) + kernel, kernel, usage.ru_minflt, usage.ru_nivcsw};
  }
  Work operator-(const Work& o) const {
    return {cpu - o.cpu, kernel - o.kernel, faults - o.faults, waited - o.waited};
  }
  Work operator+(const Work& o) const {
    return {cpu + o.cpu, kernel + o.kernel, faults + o.faults, waited + o.waited};
  }
};

}  // namespace cistern
