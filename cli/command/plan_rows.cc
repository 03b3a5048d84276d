#include "cli/command/plan_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/data/prepare/key_counter.h"
#include "worker/pass/data_source.h"

namespace cistern {
namespace {

struct Count {
  uint64_t samples = 0, keys = 0;
  bool is_whole = false;
};

absl::StatusOr<Count> CountKeys(const ModelConfig& config, size_t input) {
  constexpr size_t kBlock = 20000;
  DataSetOptions data = DataSetOf(config, config.data.source);
  data.num_samples = config.data.num_samples;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<SampleReader> reader, OpenDataSet(data));
  Count count;
  KeyCounter keys;
  while (count.samples < kSamplesCounted && !count.is_whole) {
    SampleBlock block;
    block.Reset(data.shape.slot_nums.size());
    CISTERN_ASSIGN_OR_RETURN(const size_t got, reader->Read(kBlock, &block));
    for (const Key key : block.sparse[input].keys) keys.Add(key);
    count.samples += got;
    count.is_whole = got == 0;
  }
  count.keys = keys.Distinct();
  return count;
}

}  // namespace

CountedRows CountRowsOf(const ModelConfig& config, const EmbeddingConfig& embedding) {
  const std::string table = absl::StrCat("table '", embedding.name, "' has ");
  const std::string other = absl::StrCat(" (another number: --rows ", embedding.name, "=COUNT)");
  const absl::StatusOr<Count> count = CountKeys(config, embedding.input);
  if (!count.ok()) {
    return {kRowsAssumed, "a guess",
            absl::StrCat(table, kRowsAssumed, " rows: the model file does not declare them, and ",
                         "its training data cannot be read: ", count.status().message(), other)};
  }
  return {
      count->keys, "training data",
      absl::StrCat(table, "a row for each distinct key in the ", count->is_whole ? "" : "first ",
                   count->samples, " samples of ", config.data.source, other)};
}

}  // namespace cistern
