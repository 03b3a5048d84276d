// The processors and the memory that this process may use: those of the machine, or of the
// container, service or batch job that it runs in.
//
// Read from the process's affinity, /proc/meminfo, and the control groups of the process and of all
// groups above it, version 1 and 2 (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/).
// Everything that decides a number of threads or an amount of memory asks here.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <string>

namespace cistern {

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// What a server takes beyond its memory limit for rows: the program, calls in progress, buffers of
// commits and merges. When a merge ends, there is also twice what finds the rows in files: for the
// old files and the new one. Measured: docs/measurements/2026-11-26-rows-beyond-memory.md.
inline constexpr uint64_t kMemoryBeyondLimit = uint64_t{112} << 20;

struct MachineLimits {
  // At least 1. A quota of 2.5 processors counts as 2: with a third thread, parallel loops would
  // wait for the one that the quota stops.
  int cores = 1;
  uint64_t memory_bytes = 0;
  uint64_t available_bytes = 0;         // of memory_bytes; page cache counts as available
  uint64_t processes = kUnlimited;      // processes and threads, of the control groups
  bool memory_is_of_container = false;  // memory_bytes is less than the machine has
  bool cores_are_of_container = false;  // a quota is less than the processors of the affinity
};

// root: of the file system that is read; other than "/" in tests, which then have the affinity of
// this process.
MachineLimits ReadMachineLimits(const std::string& root = "/");

// The whole text of a small file of /proc or /sys, without the white space around it; empty if
// there is none.
std::string SystemText(const std::string& path);

// Limits can change while a process runs: they are read again after a second.
int CoreCount();
uint64_t MemoryBytes();

}  // namespace cistern
