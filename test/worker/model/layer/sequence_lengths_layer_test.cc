#include "worker/model/layer/sequence_lengths_layer.h"

#include "test/worker/model/model_bench.h"
#include "test/worker/model/model_error.h"
#include "test/worker/model/model_texts.h"

namespace cistern::model {
namespace {

using ::testing::HasSubstr;

std::string Input(const std::string& keys) {
  return R"("dense": {"top": "dense", "dense_dim": 2},
            "sparse": [{"top": "read", "slot_num": 3, )" +
         keys + "}]";
}

// Attention over a sequence of up to 3 keys, masked by its length; a second one of up to 2, and
// both lengths, are columns of the last layer.
std::string SequenceText() {
  return WithSgd(
      Input(R"("sequence_lengths": [3, 0, 2], "length_top": "lengths")"),
      Embedding("rows", "read", 4, "0") + "," +
          Simple("Select", "rows", "history", R"("dim": 1, "index": [0, 1, 2])") +
          R"(,{"type": "Slice", "name": "length", "bottom": "lengths", "top": ["first", "second"],
               "ranges": [[0, 1], [1, 2]]},
              {"type": "SequenceMask", "name": "mask", "bottom": ["first", "first"], "top": "mask",
               "max_sequence_len_from": 3, "max_sequence_len_to": 3},
              {"type": "MultiHeadAttention", "name": "mixed", "top": "mixed",
               "bottom": ["history", "history", "history", "mask"]},)" +
          Simple("Reshape", "mixed", "mixed_row", R"("leading_dim": 12)") + "," +
          Simple("Reshape", "rows", "all_rows", R"("leading_dim": 24)") +
          R"(,{"type": "Concat", "name": "all", "top": "all",
               "bottom": ["mixed_row", "all_rows", "lengths", "dense"]},)" +
          FullyConnected("all", "logit", 1));
}

// Samples of the places that the model's sequences have.
data::HostBatch PlacesBatch(DataConfig data, size_t size, uint32_t seed) {
  data.sparse[0].slot_num = data.sparse[0].places();
  return MakeHostBatch(data, size, 9, 1, seed);
}

TEST(SequenceLengths, ATrainingStepIsThatOfTheFormula) {
  ModelBench bench(SequenceText(), {}, 9);
  const data::HostBatch batch = PlacesBatch(bench.config.data, 7, 3);
  ReferenceModel reference = bench.Reference();
  const double loss = reference.Loss(batch, 1);
  EXPECT_NEAR(bench.Train(batch, 1).loss, loss, 1e-6 * (1 + loss));
  const std::vector<double> rows = bench.Weights(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    double* const w = &reference.tables[0][i];
    EXPECT_NEAR(*w - rows[i], reference.Derivative(batch, 1, w), 1e-5) << i;
  }
}

TEST(SequenceLengths, TheirPlacesAreBounded) {
  const auto error = [](const std::string& keys) {
    return ErrorOf({}, WithSgd(Input(keys), Embedding("rows", "read", 4, "0") + "," +
                                                Simple("Reshape", "rows", "flat") + "," +
                                                FullyConnected("flat", "logit", 1)));
  };
  EXPECT_THAT(error(R"("sequence_lengths": [3, 2])"),
              HasSubstr("layers[0].sparse[0].sequence_lengths: has 2 numbers, but the input has 3 "
                        "slots"));
  EXPECT_THAT(error(R"("sequence_lengths": 0, "length_top": "lengths")"),
              HasSubstr("layers[0].sparse[0].length_top: no slot of this input is a sequence"));
  EXPECT_THAT(error(R"("sequence_reversed": true)"),
              HasSubstr("layers[0].sparse[0].sequence_reversed: no slot of this input"));
  EXPECT_THAT(error(R"("sequence_keeps": "first")"),
              HasSubstr("layers[0].sparse[0].sequence_keeps: no slot of this input"));
  EXPECT_THAT(error(R"("sequence_lengths": 4, "length_top": "read")"),
              HasSubstr("two tops are named 'read'"));
  EXPECT_THAT(error(R"("sequence_lengths": 65537)"),
              HasSubstr("integers >= 0 and <= 65536, found the number"));
}

TEST(SequenceLengths, SixteenBitsMustHoldThem) {
  SparseInputConfig input;
  input.slot_num = 2;
  input.sequences.lengths = {0, 257};
  EXPECT_FALSE(HoldsLengths(input, ElementType::kBfloat16));
  EXPECT_TRUE(HoldsLengths(input, ElementType::kHalf));
  input.sequences.lengths = {2049, 0};
  EXPECT_FALSE(HoldsLengths(input, ElementType::kHalf));
  EXPECT_TRUE(HoldsLengths(input, ElementType::kFloat));
}

}  // namespace
}  // namespace cistern::model
