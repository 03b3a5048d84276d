#include "worker/data/format/data_set.h"

#include "common/base/permutation.h"
#include "worker/data/format/file_list.h"
#include "worker/data/format/format_list.h"
#include "worker/data/format/key_weights.h"
#include "worker/data/format/keyset.h"
#include "worker/data/format/label_check.h"
#include "worker/data/format/skipping_reader.h"

namespace cistern::data {

namespace {

constexpr uint64_t kSeedOfFiles = 0x66696c6573;  // differs from the seeds of other draws

absl::StatusOr<std::unique_ptr<SampleReader>> OpenWithRules(const DataSetOptions& options,
                                                            const std::vector<std::string>& paths) {
  DataSetOptions stored = options;
  stored.shape = ShapeInFiles(options.shape);
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader,
                           EntryOf(options).open(stored, paths));
  if (HasKeyWeights(options.shape)) reader = OpenWithKeyWeights(std::move(reader), options.shape);
  if (options.labels == LabelRule::kAny && !options.shape.weighted) return reader;
  return OpenWithLabels(std::move(reader), options);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenGoodFiles(const DataSetOptions& options,
                                                            const std::vector<std::string>& paths,
                                                            bool may_be_empty) {
  DataSetOptions one = options;
  one.num_samples = 0;
  return OpenSkippingBadFiles(
      paths, options.shape.slot_nums.size(), options.num_samples,
      [one](const std::string& path) { return OpenWithRules(one, {path}); }, options.bad_data,
      may_be_empty);
}

void Shuffle(uint64_t seed, uint64_t stream, std::vector<std::string>* paths) {
  std::vector<std::string> shuffled;
  for (const size_t place : Permutation(seed, stream, paths->size())) {
    shuffled.push_back(std::move((*paths)[place]));
  }
  *paths = std::move(shuffled);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesOf(const DataSetOptions& options, uint32_t epoch) {
  CISTERN_ASSIGN_OR_RETURN(
      std::vector<std::string> paths,
      ReadFileList(options.source, /*keep_missing=*/options.bad_data != nullptr));
  if (options.shuffle_files) Shuffle(options.shuffle_seed ^ kSeedOfFiles, epoch, &paths);
  return paths;
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenFilesOf(const DataSetOptions& options,
                                                          const std::vector<std::string>& paths,
                                                          bool may_be_empty) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<SampleReader> reader,
                           options.bad_data == nullptr
                               ? OpenWithRules(options, paths)
                               : OpenGoodFiles(options, paths, may_be_empty));
  if (options.keysets.empty()) return reader;
  return OpenWithKeyset(std::move(reader), options);
}

absl::StatusOr<std::unique_ptr<SampleReader>> OpenDataSet(const DataSetOptions& options,
                                                          uint32_t epoch) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(options, epoch));
  return OpenFilesOf(options, paths);
}

}  // namespace cistern::data
