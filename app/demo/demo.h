// The whole of Cistern in seven steps, with real servers, on data whose best possible AUC is known.
//
//   1 data      writes synthetic samples
//   2 servers   starts two cistern-server processes on loopback
//   3 train     runs a cistern-worker process, over gRPC
//   4 evaluate  predicts the test data on the two servers
//   5 save      saves the model on both servers, and stops them
//   6 load      loads it onto three new servers
//   7 compare   predicts again: the output must be byte for byte the same
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

struct DemoOptions {
  std::string dir;  // a new folder; empty: a temporary one, removed at the end unless `keep`
  uint64_t samples = 80000;  // to train on, 4,000 or more; there are a quarter as many to test
  bool keep = false;
};

struct DemoStep {
  int number = 0;  // from 1
  std::string name;
  double seconds = 0;        // once it has ended
  std::string outcome = {};  // in words, once it has ended without an error
};
inline constexpr int kDemoSteps = 7;

// What the demo is given beside its options. All members may be empty.
struct DemoCalls : JobCalls {
  std::function<void(const DemoStep& step)> begin;
  std::function<void(const DemoStep& step, const absl::Status& status)> end;
  std::function<void(const std::string& line)> progress;  // the newest event of the worker's log
};

struct DemoResult {
  std::string dir;  // of the files
  bool kept = false;
  std::string programs;  // the folder of the programs that ran
  std::vector<DemoStep> steps;
  nlohmann::ordered_json train;  // the summary that the worker printed
  double auc = 0, best_auc = 0;
  uint64_t predictions = 0;  // the same on two and on three servers
};

// Stops every process that it started before it returns, after an error, too. Its servers are in
// plain text: the processes inherit the environment, which must name no certificates.
//
// kInvalidArgument, with options: too few samples; the folder exists and is not empty. kCancelled:
// stopped. kInternal: a program failed, with the end of its log; the predictions differ.
absl::StatusOr<DemoResult> RunDemo(const DemoOptions& options, const DemoCalls& calls);

nlohmann::ordered_json JsonOf(const DemoResult& result);

}  // namespace cistern::app
