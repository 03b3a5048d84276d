// Model files for the usual CTR models, with sizes that fit the data.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::model {

// lr: logistic regression. fm: factorization machine (Rendle 2010). wdl: Wide & Deep (Cheng et al.
// 2016). deepfm (Guo et al. 2017). dcn, dcnv2: Deep & Cross (Wang et al. 2017, 2021), the cross
// beside the deep network. dlrm (Naumov et al. 2019).
//
// Of several labels: esmm (Ma et al. 2018, SIGIR), a label that needs those before it, such as a
// purchase that needs a click; mmoe (Ma et al. 2018, KDD), a mixture of the same experts for each
// label; ple (Tang et al. 2020), in which each label has experts of its own, too.
enum class ModelKind { kLr, kFm, kWdl, kDeepFm, kDcn, kDcnV2, kDlrm, kEsmm, kMmoe, kPle };

// Whether a kind predicts several labels. The others predict one.
bool PredictsSeveral(ModelKind kind);

// The word of a kind, and the kind of a word; nullopt: none.
const char* Word(ModelKind kind);
std::optional<ModelKind> ModelKindOf(absl::string_view word);
// "lr|fm|wdl|deepfm|dcn|dcnv2|dlrm|esmm|mmoe|ple"
std::string ModelKindWords();

// What a model file says about its data (Norm, with checksums).
struct TemplateData {
  std::string source, eval_source;  // eval_source empty: no evaluation, so no early stopping
  bool wide_keys = true;
  struct Head {
    std::string label;
    double positives = 0;  // share of positive labels among those that are known; 0: unknown
  };
  std::vector<Head> heads;  // of the labels of a kind that predicts several, in their order
  uint32_t label_dim = 1, dense_dim = 0;  // label_dim: where there are no heads
  uint32_t slot_num = 1;                  // at least 1
  bool several_values = false;            // a slot can hold more than one key
  double positives = 0;                   // of one label, as Head::positives, weighted
  bool exact_share = false;  // the evaluation data is a random part of what `positives` is of
  bool weighted = false;     // each sample has a weight
  bool key_weights = false;  // the keys have weights
  bool sums_values = false;  // several keys of a slot are added up, not averaged
  double negative_rate = 1;  // share of the negative samples that the training data holds
};

// What grows with the data: a small data set needs a small model.
struct TemplateSizes {
  uint32_t vector = 0;           // floats of an embedding
  std::vector<uint32_t> hidden;  // widths of the deep network
  bool batch_norm = true;
  double dropout = 0;
  uint32_t crosses = 3;  // dcn, dcnv2
  uint32_t batch = 0, epochs = 0;
  double learning_rate = 0;
  double row_learning_rate = 0;  // of embeddings
  double row_range = 0.01;       // standard deviation of the first embeddings
  double embedding_l2 = 0;
  uint32_t patience = 3;  // epochs; 0: all epochs are trained, and the last one is kept
  // The deep part starts at 0, so that the model starts as a linear one, or as a constant: what a
  // random start adds to the log-odds is unlearned only where there are enough samples.
  bool zero_start = false;
  bool zero_linear = false;  // the weights of dense features start at zero, too
  // Dropout on what the deep part and pairs of vectors read, before any layer. Vectors of few
  // samples would else learn them by heart.
  double vector_dropout = 0;
  bool linear_part = false;  // of dcn, dcnv2 and dlrm, beside the deep part; others have one
};
// samples: of the training data. keys: distinct values of all slots. rarer: samples of the rarer
// class (RarerClass). Where most keys are seen a few times only, rows get a lower learning rate, so
// that they do not overfit before the network has learned. Few samples of a class are not enough to
// train the statistics of a batch norm, and very few neither a wide network nor the choice of an
// epoch. paired_slots: how many slots have values that mean something in pairs, more than in each
// value alone; 0: it does not show.
TemplateSizes SizesFor(ModelKind kind, uint64_t samples, uint64_t keys, uint64_t rarer,
                       uint32_t paired_slots = 0);

// Slows the learning of the network's weights where samples have so many numbers that together they
// tell each sample of the rarer class from all others; true if so. dense_dim: of a sample.
bool SizeForWide(uint32_t dense_dim, uint64_t rarer, TemplateSizes* sizes);

// Below this many samples of a class, a linear model is the better default.
inline constexpr uint64_t kMinRarerForDeep = 300;
// Below this many, and fewer than three for each distinct value, the held-out ones are too few to
// choose an epoch by, and a small network with a strong prior is trained to the end.
inline constexpr uint64_t kMinRarerForStopping = 2500;
// Below this many, the statistics of a batch norm are noise.
inline constexpr uint64_t kMinRarerForNorm = 5000;
// The samples of the rarer class, if `positives` is the share of positives; all if it is unknown.
uint64_t RarerClass(uint64_t samples, double positives);

// The model file. heads: at least two if PredictsSeveral(kind), else none.
nlohmann::ordered_json ModelTemplate(ModelKind kind, const TemplateData& data,
                                     const TemplateSizes& sizes);
// Its text, a layer a line.
std::string ModelTemplateText(ModelKind kind, const TemplateData& data, const TemplateSizes& sizes);

}  // namespace cistern::model
