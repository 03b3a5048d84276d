// Makes samples of the messages of a topic.
//
// By a recipe: rows as lines in the layout of the training text (all its columns, labels included,
// no header line), or JSON objects, one a line; or an Arrow IPC stream of columns by name. Each
// message says by its first bytes what it holds. Without a recipe: a whole Norm file. A message
// holds one sample or many.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/format/sample_reader.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::data {

// Reads the samples of one message after the other.
//
// Threads: one at a time.
class PayloadReader : public SampleReader {
 public:
  // Begins a message; Read returns 0 at its end. message: outlives the calls of Read. place: for
  // errors, "clicks/0: offset 17".
  virtual void Begin(absl::string_view message, const std::string& place) = 0;
  // Whether the message has no more samples, as far as its bytes tell.
  virtual bool at_end() const = 0;
};

// slot_nums: as in OpenTextSamples. kInvalidArgument: a recipe of libsvm or libffm lines.
absl::StatusOr<std::unique_ptr<PayloadReader>> ReadRecipePayload(
    std::shared_ptr<const OwnedEncoder> encoder, const std::vector<uint32_t>& slot_nums);
// options: its source is not read.
std::unique_ptr<PayloadReader> ReadNormPayload(const NormOptions& options);

}  // namespace cistern::data
