#include "test/cuda/emulator/graphs.h"

void EmulatedGraph::Run() const {
  std::vector<size_t> done(lines.size());
  const RunLine run = [&](size_t line, size_t until) {
    while (done[line] < until) lines[line].entries[done[line]++].run(run);
  };
  run(0, lines.front().entries.size());
}

bool EmulatedGraph::IsJoined() const {
  for (size_t line = 1; line < lines.size(); ++line) {
    if (lines[line].joined < lines[line].entries.size()) return false;
  }
  return true;
}

bool EmulatedGraph::IsLike(const EmulatedGraph& other) const {
  if (lines.size() != other.lines.size()) return false;
  for (size_t line = 0; line < lines.size(); ++line) {
    const std::vector<Entry>& mine = lines[line].entries;
    const std::vector<Entry>& others = other.lines[line].entries;
    if (mine.size() != others.size()) return false;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].kind != others[i].kind) return false;
    }
  }
  return true;
}
