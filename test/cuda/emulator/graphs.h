// Graphs of the emulated GPU: what streams were given while they were captured.
//
// A graph runs as late as CUDA allows, as streams do: first the work of the stream that was
// captured, and that of a stream which joined it where somebody waits for it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

struct EmulatedGraph {
  // Runs the first `until` entries of a line that have not run.
  using RunLine = std::function<void(size_t line, size_t until)>;
  struct Entry {
    std::string kind;  // of the node: what an update of a graph must find again
    std::function<void(const RunLine&)> run;
  };
  struct Line {
    std::vector<Entry> entries;
    size_t joined = 0;  // entries that another line waits for
  };
  std::vector<Line> lines;  // that of the captured stream first

  void Run() const;
  // Every line's work is waited for.
  bool IsJoined() const;
  // The same nodes in the same order.
  bool IsLike(const EmulatedGraph& other) const;
};
