// Graphs of the emulated GPU: the work captured from streams.
//
// A graph runs as late as CUDA allows, like streams: first the work of the stream that began the
// capture; the work of a forked stream runs where another stream waits for it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

struct EmulatedGraph {
  // Runs the entries of a line up to `until` that have not run.
  using RunLine = std::function<void(size_t line, size_t until)>;
  struct Entry {
    std::string kind;  // kind of node, which a graph update must match
    std::function<void(const RunLine&)> run;
  };
  struct Line {
    std::vector<Entry> entries;
    size_t joined = 0;  // number of entries that another line waits for
  };
  std::vector<Line> lines;  // the line of the origin stream is first

  void Run() const;
  // Whether all lines are waited for.
  bool IsJoined() const;
  // Whether both graphs have the same nodes in the same order.
  bool IsLike(const EmulatedGraph& other) const;
};
