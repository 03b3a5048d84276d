// Reads tar shards in WebDataset's layout (tar_sample.h), one after the other, each forward.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/format/tar_sample.h"

namespace cistern::data {

// Opens the shards of `paths` (file_list.h). Local files are checked for existence at once. A
// sample is a run of adjacent members with one base name; members that do not belong to a sample,
// and extensions other than .json and .cls, are passed over.
//
// Skip passes over a shard without reading it if a manifest beside it or one folder above
// (shard_manifest.h) knows its number of samples; otherwise it reads the headers only.
//
// kNotFound: no such file. Errors of Read: as TarArchive and TarSampleReader, with shard, sample
// (from 0) and its name; kDataLoss also for a sample without .json or with two members of a kind.
absl::StatusOr<std::unique_ptr<SampleReader>> OpenTar(const TarSampleOptions& options,
                                                      const std::vector<std::string>& paths);

}  // namespace cistern::data
