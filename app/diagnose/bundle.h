// A folder with the facts about a fault, to look at or to send.
//
//   app::BundleOptions options;
//   options.out = "diagnosis";
//   options.servers = "host1:7700,host2:7700";
//   options.runs = {"runs/a"};
//   absl::StatusOr<app::Bundle> bundle = app::CollectBundle(options);
//
// Only the names and ends of files, states and figures are collected: no data, no rows, no
// certificates, no environment. Texts pass through WithoutSecrets (secrets.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tls/tls_files.h"

namespace cistern::app {

// A text that the caller adds: "version.json".
struct BundleText {
  std::string name, text;
};

struct BundleOptions {
  std::string out;      // the folder; must not exist
  std::string servers;  // "host:port,host:port", whose state is asked for; empty: none
  TlsFiles tls = {};
  double timeout = 5;                // seconds to wait for an answer of a server
  std::vector<std::string> metrics;  // "127.0.0.1:9700" or a Unix socket, whose figures are read
  std::vector<std::string> runs;     // run folders
  std::vector<std::string> logs;     // log files, of which the end is copied
  bool stacks = false;               // call stacks of the processes of this machine, by gdb
  std::vector<BundleText> texts;
};

struct Bundle {
  struct File {
    std::string name;  // within the folder
    uint64_t bytes = 0;
  };
  std::vector<File> files;
  // What could not be collected, each with the reason: "server host2:7700: ...".
  std::vector<std::string> left_out;
};

// Collects what it can: a server that is down, or a file that cannot be read, is left out and
// named. The folder also has README.txt, which says what is in it. kInvalidArgument: `out` exists,
// or cannot be created. kResourceExhausted, kInternal: it cannot be written.
absl::StatusOr<Bundle> CollectBundle(const BundleOptions& options);

}  // namespace cistern::app
