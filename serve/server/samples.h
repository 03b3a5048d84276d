// The samples of a request, decoded from its tensors. There are three forms of inputs.
//
// Named inputs. b samples:
//   dense         FP32 [b, dense_dim]; absent if the model has no dense features
//   NAME.keys     INT64, UINT64, INT32 or UINT32, n elements, for each sparse input NAME: the keys
//                 by (sample, slot). INT64 carries the 64 bits of a key, so the largest keys are
//                 negative there; a negative INT32 is refused, because it has lost its upper half.
//   NAME.weights  FP32, n elements, for an input whose keys have weights: that of each key
//   NAME.offsets  INT32, b * slots + 1 elements: slot s of sample i holds the keys from offset
//                 i * slots + s up to the next one; the first is 0, the last is n
//
// HugeCTR's inputs, as its Triton backend takes them; the shapes count only by their products:
//   DES        FP32, b * dense_dim elements; absent, or empty, if the model has no dense features
//   ROWINDEX   INT32: the offsets of each sparse input, one input after the other, each from 0
//   CATCOLUMN  INT64, UINT64, INT32 or UINT32: keys sample by sample; within a sample, sparse input
//              by sparse input
// A model whose keys have weights does not take them: they have no place for weights.
//
// Rows of text, for a model with a recipe:
//   text       BYTES [b]: lines as in the training data (CSV, for example), or [b, columns]: their
//              fields. Columns are those that the model reads, without labels (FeatureColumns)
//
// The sparse inputs are in the order of the model file.
#pragma once

#include <vector>

#include "serve/predictor/predictor.h"
#include "serve/server/tensor.h"

namespace cistern::serve {

// The samples of a request. Owns all arrays that request() refers to.
//
// Threads: one at a time.
class Samples {
 public:
  // Decodes inputs of one form. Nothing is allocated for a count before the bytes prove it.
  // kInvalidArgument for anything that does not fit: a missing, unknown or repeated input, both
  // forms at once, a wrong data type, a shape that disagrees with the bytes, offsets that decrease
  // or run over, a dense feature that is not finite, no samples, or more than max_samples.
  //
  // encoder: of rows of text; null: the model has no recipe.
  static absl::StatusOr<Samples> Decode(const PredictorShape& shape, size_t max_samples,
                                        absl::Span<const InferTensor> inputs,
                                        const data::OwnedEncoder* encoder = nullptr);

  Samples(Samples&&) = default;
  Samples& operator=(Samples&&) = default;

  const PredictRequest& request() const { return request_; }
  size_t key_num() const;

 private:
  friend class SampleDecoder;
  Samples() = default;

  PredictRequest request_;
  std::vector<float> dense_;
  std::vector<std::vector<Key>> keys_;          // by sparse input
  std::vector<std::vector<uint32_t>> offsets_;  // by sparse input
  std::vector<std::vector<float>> weights_;     // by sparse input; of keys, or empty
};

}  // namespace cistern::serve
