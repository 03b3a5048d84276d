#include "test/siege/report.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

constexpr uint64_t kPrintedOfName = 3;  // more attacks of one name would only repeat these
constexpr size_t kPrintedBytes = 240;

std::string Short(absl::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kPrintedBytes)) {
    line += static_cast<unsigned char>(c) < ' ' || c == 127 ? ' ' : c;
  }
  return text.size() > kPrintedBytes ? absl::StrCat(line, "... (", text.size(), " bytes)") : line;
}

}  // namespace

void SiegeReport::Tried(const std::string& group, const std::string& name, bool repelled,
                        absl::string_view request, absl::string_view answer) {
  uint64_t times = 0;
  {
    absl::MutexLock lock(&mutex_);
    Group& of = groups_[group];
    ++of.tried;
    if (repelled) {
      ++of.repelled;
      return;
    }
    times = ++of.through[name];
  }
  if (times > kPrintedOfName) return;
  Say(absl::StrCat("GOT THROUGH ", group, ": ", name, "\n  request: ", Short(request),
                   "\n  answer:  ", Short(answer)));
}

void SiegeReport::Expect(bool holds, const std::string& what) {
  if (holds) return;
  Say(absl::StrCat("BROKEN ", what));
  absl::MutexLock lock(&mutex_);
  broken_.push_back(what);
}

void SiegeReport::Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

uint64_t SiegeReport::tried() const {
  absl::MutexLock lock(&mutex_);
  uint64_t sum = 0;
  for (const auto& [name, group] : groups_) sum += group.tried;
  return sum;
}

uint64_t SiegeReport::failures() const {
  absl::MutexLock lock(&mutex_);
  uint64_t sum = broken_.size();
  for (const auto& [name, group] : groups_) sum += group.tried - group.repelled;
  return sum;
}

void SiegeReport::PrintTable() const {
  absl::MutexLock lock(&mutex_);
  std::printf("%-28s %8s %9s %8s\n", "group", "tried", "repelled", "through");
  for (const auto& [name, group] : groups_) {
    std::printf("%-28s %8llu %9llu %8llu\n", name.c_str(),
                static_cast<unsigned long long>(group.tried),
                static_cast<unsigned long long>(group.repelled),
                static_cast<unsigned long long>(group.tried - group.repelled));
  }
  for (const auto& [name, group] : groups_) {
    for (const auto& [attack, times] : group.through) {
      std::printf("through: %s: %s (%llu)\n", name.c_str(), attack.c_str(),
                  static_cast<unsigned long long>(times));
    }
  }
  for (const std::string& what : broken_) std::printf("broken: %s\n", what.c_str());
  std::fflush(stdout);
}

}  // namespace cistern
