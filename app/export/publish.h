// Keeps a serving folder at the newest commit of a training.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/export/version_options.h"
#include "app/job_calls.h"
#include "app/model/model_source.h"

namespace cistern::app {

struct PublishOptions {
  ModelOptions model;  // its model file, or the folder of its run
  VersionOptions version = {.keep = 3};
  // The data_dir of servers, or the folder of a training run that keeps its commits. Empty: the
  // files of commits are read through the servers of model.fleet.
  std::string state;
  uint64_t poll_ms = 100;  // between two looks for a new commit
  // A table is written as a whole, beside further versions, once this share of its rows has changed
  // since it was.
  double base_share = 0.2;
  bool once = false;  // publishes the newest commit and ends
  bool idle = false;  // runs only where a processor has nothing else to do
};

struct Published {
  std::optional<uint64_t> commit;  // that the folder serves now; nullopt: none that can be read
  uint64_t versions = 0;           // written by this call
};

// Called for each version, with the seconds that it took, from the thread of Publish.
using OnPublished = std::function<void(const ServingWritten& written, double seconds)>;

// Publishes each commit that is the newest one when it looks, until `calls.stop` is set: then it
// returns what it did. Waits for a training that is not there yet. Lowers the priority of the
// calling thread for good.
//
// Faults that pass (a folder that is away, a full disk, a damaged commit) are logged and tried
// again, unless options.once is set. Errors: those of the options and of the model file, and of a
// serving folder that serves another training.
absl::StatusOr<Published> Publish(const PublishOptions& options, const JobCalls& calls,
                                  const OnPublished& published);

}  // namespace cistern::app
