#include "worker/data/format/sample_set_writer.h"

#include "worker/data/format/format_list.h"
#include "worker/data/format/norm_set_writer.h"

namespace cistern::data {
namespace {

class NormSet : public SampleSetWriter {
 public:
  NormSet(FileSystem& files, const std::string& folder, const DataSetOptions& options,
          uint64_t samples_per_file)
      : writer_(files, folder, {options.check, options.wide_keys, options.shape},
                samples_per_file) {}

  absl::Status Append(const SampleBlock& block) override { return writer_.Append(block); }
  absl::Status AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool& pool) override {
    return writer_.AppendAll(blocks, pool);
  }
  absl::Status Close() override { return writer_.Close(); }
  std::string source() const override { return "file_list.txt"; }

 private:
  NormSetWriter writer_;
};

}  // namespace

absl::Status SampleSetWriter::AppendAll(absl::Span<const SampleBlock> blocks, ThreadPool&) {
  for (const SampleBlock& block : blocks) CISTERN_RETURN_IF_ERROR(Append(block));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateNormSetWriter(FileSystem& files,
                                                                     const std::string& folder,
                                                                     const DataSetOptions& options,
                                                                     uint64_t samples_per_file) {
  return std::make_unique<NormSet>(files, folder, options, samples_per_file);
}

absl::StatusOr<std::unique_ptr<SampleSetWriter>> CreateSampleSetWriter(
    FileSystem& files, const std::string& folder, const DataSetOptions& options,
    uint64_t samples_per_file) {
  return EntryOf(options).create(files, folder, options, samples_per_file);
}

}  // namespace cistern::data
