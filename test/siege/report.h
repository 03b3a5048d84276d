// What was tried, and what got through.
//
// Every attack has a group and a name. One that got through is printed at once, with the request
// and the answer, both cut short; the table at the end counts all.
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
  // An attack that the servers were to repel. request: what was sent, for people.
  void Tried(const std::string& group, const std::string& name, bool repelled,
             absl::string_view request = "", absl::string_view answer = "");
  // A fact that has to hold and is no attack: a server that lives, memory below its bound.
  void Expect(bool holds, const std::string& what);
  // A line for people.
  void Say(const std::string& line);

  uint64_t tried() const;
  // Attacks that got through and expectations that did not hold.
  uint64_t failures() const;
  // Attacks tried and repelled, by group, and every name that got through.
  void PrintTable() const;

 private:
  struct Group {
    uint64_t tried = 0, repelled = 0;
    std::map<std::string, uint64_t> through;  // by name
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> broken_ ABSL_GUARDED_BY(mutex_);  // expectations
};

}  // namespace cistern
