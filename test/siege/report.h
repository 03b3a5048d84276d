// The record of all attacks, and of those that got through.
//
// Every attack has a group and a name. An attack that got through is printed at once, with the
// request and the answer, both truncated; the table at the end counts all attacks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace cistern {

// Threads: any thread.
class SiegeReport {
 public:
  // Records an attack that the servers should repel. request: what was sent, in readable form.
  void Tried(const std::string& group, const std::string& name, bool repelled,
             absl::string_view request = "", absl::string_view answer = "");
  // Checks a fact other than an attack: a server runs, memory is below its bound.
  void Expect(bool holds, const std::string& what);
  // Prints a line.
  void Say(const std::string& line);

  uint64_t tried() const;
  // The number of attacks that got through, plus the number of failed checks.
  uint64_t failures() const;
  // Prints the attacks tried and repelled, by group, and the name of every attack that got through.
  void PrintTable() const;

 private:
  struct Group {
    uint64_t tried = 0, repelled = 0;
    std::map<std::string, uint64_t> through;  // by name
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> broken_ ABSL_GUARDED_BY(mutex_);  // failed checks
};

}  // namespace cistern
