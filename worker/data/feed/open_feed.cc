#include "worker/data/feed/open_feed.h"

#include "worker/data/format/label_check.h"
#include "worker/data/recipe/text_samples.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

using OpenFile = std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(const std::string&)>;

absl::StatusOr<std::shared_ptr<const OwnedEncoder>> EncoderOf(const FeedSourceOptions& options) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const FoundRecipe found, ReadRecipe(files, options.recipe));
  CISTERN_RETURN_IF_ERROR(AddContext(
      CheckRecipeShape(found.recipe, options.data.shape, options.data.wide_keys), found.path));
  return OwnedEncoder::Open(found.recipe, found.vocabulary_path());
}

// The rows of one text file, which the checks of labels can name.
class FileRows : public SampleReader {
 public:
  FileRows(const std::string& path, std::unique_ptr<SampleReader> rows)
      : path_(path), rows_(std::move(rows)) {}
  absl::StatusOr<size_t> Read(size_t max_samples, SampleBlock* block) override {
    return rows_->Read(max_samples, block);
  }
  absl::StatusOr<uint64_t> Skip(uint64_t max_samples, SampleBlock* scratch) override {
    return rows_->Skip(max_samples, scratch);
  }
  std::optional<uint64_t> Samples() const override { return rows_->Samples(); }
  std::string PlaceOf(uint64_t sample) const override {
    return absl::StrCat(path_, ": row ", sample);
  }

 private:
  const std::string path_;
  const std::unique_ptr<SampleReader> rows_;
};

absl::StatusOr<OpenFile> OpenerOf(const FeedSourceOptions& options) {
  DataSetOptions data = options.data;
  data.bad_data = nullptr;  // the feed decides
  data.num_samples = 0;
  if (options.recipe.empty()) {
    return OpenFile([data](const std::string& path) { return OpenFilesOf(data, {path}); });
  }
  CISTERN_ASSIGN_OR_RETURN(const auto encoder, EncoderOf(options));
  return OpenFile(
      [data, encoder](const std::string& path) -> absl::StatusOr<std::unique_ptr<SampleReader>> {
        TextInput input;
        input.files = {path};
        input.labels = Labels::kNeeded;
        CISTERN_ASSIGN_OR_RETURN(
            std::unique_ptr<SampleReader> reader,
            OpenTextSamples(encoder, input, data.shape.slot_nums, /*kept=*/nullptr));
        return OpenWithLabels(std::make_unique<FileRows>(path, std::move(reader)), data);
      });
}

using Skips = std::function<bool(const std::string& place, const absl::Status& status)>;

Skips SkipsOf(BadData* bad) {
  if (bad == nullptr) return nullptr;
  return [bad](const std::string& place, const absl::Status& status) {
    if (!IsBadData(status)) return false;
    bad->Add(place, status);
    return true;
  };
}

absl::StatusOr<std::unique_ptr<FeedSource>> OpenTopics(const FeedSourceOptions& options) {
  KafkaFeedOptions topics;
  topics.source = options.source;
  topics.properties = options.properties;
  topics.skips_lost = options.skips_lost;
  topics.data = options.data;
  topics.skips = SkipsOf(options.data.bad_data);
  topics.status = options.status;
  if (!options.recipe.empty()) {
    CISTERN_ASSIGN_OR_RETURN(const auto encoder, EncoderOf(options));
    topics.open = [encoder, slot_nums = options.data.shape.slot_nums] {
      return ReadRecipePayload(encoder, slot_nums);
    };
  } else if (options.data.format == DataFormat::kNorm) {
    NormOptions norm;
    norm.check = options.data.check;
    norm.wide_keys = options.data.wide_keys;
    norm.shape = options.data.shape;
    norm.slot_starts = options.data.slot_starts;
    topics.open = [norm] { return ReadNormPayload(norm); };
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        options.source, ": messages hold text, by a recipe, or Norm files; this model reads ",
        FormatName(options.data.format)));
  }
  return OpenKafkaFeed(topics);
}

absl::StatusOr<std::unique_ptr<FeedSource>> OpenFolder(const FeedSourceOptions& options) {
  FolderFeedOptions folder;
  folder.folder = WithoutFileScheme(options.source);
  folder.partitions = options.partitions;
  folder.completes = options.completes;
  folder.age_seconds = options.age_seconds;
  folder.skips = SkipsOf(options.data.bad_data);
  folder.status = options.status;
  CISTERN_ASSIGN_OR_RETURN(folder.open, OpenerOf(options));
  return OpenFolderFeed(folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FeedSource>> OpenFeedSource(const FeedSourceOptions& options) {
  if (IsKafka(options.source)) return OpenTopics(options);
  const std::string path = WithoutFileScheme(options.source);
  if (!IsRemote(path) && path.find("://") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.source,
                     ": streams are folders, of this machine or an object store "
                     "(s3://BUCKET/PREFIX), or kafka://BROKERS/TOPICS"));
  }
  return OpenFolder(options);
}

}  // namespace cistern::data
