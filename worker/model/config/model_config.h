// The configuration of a model, parsed and checked: HugeCTR 2.3's JSON (solver, optimizer, layers)
// and the "cistern" object for settings that HugeCTR has no key for.
//
// Grammar and defaults follow HugeCTR 2.3. docs/configuration.md lists every accepted key. Any
// other key is an error that names its path and the nearest known key.
#pragma once

#include <algorithm>
#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/value/learning_rate.h"
#include "common/value/update_rule.h"
#include "proto/schema.pb.h"
#include "worker/data/format/data_set.h"
#include "worker/data/format/sequence_slots.h"
#include "worker/model/config/layer_functions.h"

namespace cistern::model {

struct OptimizerConfig {
  RuleParams rule;  // only the cistern object sets AdaGradShared, AdaGradStd; embeddings only
  LearningRateSchedule schedule;
};

struct SolverConfig {
  uint64_t display = 200;
  uint64_t max_iter = 0;    // 0: num_epochs decides
  uint32_t num_epochs = 0;  // 0: max_iter decides
  uint64_t snapshot = 0;    // 0: never
  std::string snapshot_prefix = "./";
  // HugeCTR's model files that a new run starts from (worker/export/hugectr/hugectr_model.h).
  // sparse_model_files has one entry per embedding, in order; an embedding with an empty entry or
  // without one starts from new weights.
  std::string dense_model_file, dense_opt_states_file;
  std::vector<std::string> sparse_model_files;
  uint64_t batchsize = 0;
  uint64_t batchsize_eval = 0;
  uint64_t eval_interval = 0;  // 0: never
  uint64_t eval_batches = 0;   // 0: all of the evaluation data
  double auc_threshold = 1.0;  // training stops once AUC >= this; 1 or more: never
  std::vector<std::string> eval_metrics = {"AUC"};  // from MetricNames(), without thresholds
  bool wide_keys = false;                           // input_key_type I64
  bool enable_tf32 = false;                         // enable_tf32_compute
  bool cuda_graph = true;                           // launch a GPU step as one CUDA graph
  uint64_t seed = 0;
};

struct SparseInputConfig {
  std::string top;
  std::string type;  // DistributedSlot, LocalizedSlot
  uint32_t slot_num = 0;
  uint32_t max_feature_num = 0;  // max_feature_num_per_sample
  bool key_weights = false;      // each of its keys has a weight (CisternConfig::key_weights)
  data::SequenceSlots sequences;
  std::string length_top;  // [b, number of sequences]; empty: none
  // Rows of a sample that its embeddings give: slot_num, if no slot is a sequence.
  uint32_t places() const { return static_cast<uint32_t>(PlacesOf(sequences, slot_num)); }
  size_t sequence_num() const {
    return sequences.lengths.size() -
           std::count(sequences.lengths.begin(), sequences.lengths.end(), 0u);
  }
};

struct DataConfig {
  data::DataFormat format = data::DataFormat::kNorm;
  std::string source, eval_source;
  data::NormCheck check = data::NormCheck::kNone;
  std::string label_top, dense_top;
  uint32_t label_dim = 1, dense_dim = 0;
  std::vector<std::string> label_names;  // of several labels, by column; empty: they have none
  bool weighted = false;  // the data holds one more label than label_dim: the sample's weight
  std::vector<SparseInputConfig> sparse;
  uint64_t num_samples = 0, eval_num_samples = 0;  // Raw; 0: all
  bool float_label_dense = false;                  // Raw
  std::vector<std::string> keysets;                // keyset files of the training data
  std::vector<uint64_t> slot_sizes;                // Raw, Parquet: slot_size_array, or empty
  uint64_t cache_eval_batches = 0;                 // batches of evaluation data to keep in memory
};

enum class Combiner { kSum, kMean };

// The key ranges of an input's slots, from a slot_size_array: the keys of slot s start at the sum
// of all sizes before sizes[first + s].
struct KeySpace {
  std::vector<uint64_t> sizes;  // empty: no slot_size_array
  uint32_t first = 0;           // index of the input's first slot in sizes
};

struct EmbeddingConfig {
  std::string name, bottom, top;  // name: layer name, or top if it has none; also the table's name
  size_t input = 0;               // index into DataConfig.sparse
  uint32_t vec_size = 0;
  Combiner combiner = Combiner::kSum;
  bool one_hot = false;    // a ...OneHot type: key_space bounds the keys of each slot
  bool localized = false;  // a Localized... type: HugeCTR's files hold the slot of each key
  KeySpace key_space;
  OptimizerConfig optimizer;
  v1::TableSpec spec;  // complete: the servers create the table from it
  // Today, if spec.ctr.day_id_decay (common/value/accessor/ctr_lifecycle.h).
  uint32_t day = 0;
  bool sums_gradients = false;  // gradient "sum": rows move by the gradient of the sum of losses
};

// Initial weights of a dense layer, in the order of their words (layer_grammar.cc).
enum class InitKind {
  kKaimingNorm,
  kKaimingUniform,
  kTorchLinear,
  kUniform,
  kXavierNorm,
  kXavierUniform,
  kZero,
  kDefault
};

// A dense layer or the loss: what all types have, and the struct of the type's own keys.
struct LayerConfig {
  std::string name, type;
  std::string path;  // for messages: "layers[7]"
  std::vector<std::string> bottoms, tops;
  LayerMaker make = nullptr;  // builds it; null for a loss
  // The struct that the type's description names (DenseLayerOf, layer_grammar.h), if it has keys:
  // for built-in types one of worker/model/layer/layer_configs.h.
  std::any own_config;
  // {"num_output", "64"}: the keys that decide what the layer computes (graph_difference.h).
  std::vector<std::pair<std::string, std::string>> values;

  bool is_loss() const { return make == nullptr; }

  template <typename Config>
  const Config& own() const {
    const Config* const config = std::any_cast<Config>(&own_config);
    CISTERN_CHECK(config != nullptr);
    return *config;
  }
};

// The keys of a loss.
struct LossConfig {
  std::vector<float> target_weight;  // MultiCrossEntropyLoss: [label_dim]
  std::string regularizer;           // "", L1, L2
  double lambda = 0;
};

// The slot whose key is the group of a sample, for GAUC.
struct GroupSlot {
  size_t input = 0;  // index into DataConfig.sparse
  uint32_t slot = 0;
};

// Training data that never ends.
struct StreamConfig {
  std::string source;
  double seconds = 10;   // of a pass, after its first sample
  uint64_t samples = 0;  // of a pass; 0: no limit
  std::string recipe;    // its folder; empty: files of the model's own format
  std::string complete = "name";
  double age_seconds = 60;
  bool ends_when_empty = false;
  bool scores = true;              // passes, before they are trained
  uint64_t score_samples = 65536;  // of a pass, at most; 0: all
  std::string properties;          // Kafka: a file of librdkafka's properties
  bool skips_lost = false;         // Kafka: on_lost: skip
};

// The "cistern" object.
struct CisternConfig {
  double embedding_l2 = 0;  // adds (embedding_l2 / 2) * |w|^2 for each distinct row of a batch
  // True: a step whose loss or gradient is not finite is skipped and counted. False: the run ends.
  bool skips_not_finite = false;
  double clip_norm = 0;  // gradients are scaled down to this global norm; 0: off
  bool eval_every_epoch = false;
  double plateau_factor = 0;  // learning rate *= this after an epoch without gain; 0: off
  double plateau_min_lr = 0;
  double plateau_min_gain = 1e-6;
  bool watches_log_loss = false;  // monitor: LogLoss
  uint32_t patience = 0;          // stop after this many consecutive epochs without gain; 0: never
  bool keep_best = false;         // the best epoch's state is the final one
  bool shuffle = false;
  bool shuffle_files = false;
  float calibrate = 0;           // the share of positives; 0: predictions are not calibrated
  bool calibrate_exact = false;  // the mean becomes this share, whatever that of the evaluation is
  uint64_t shuffle_buffer = 0;   // samples; 0: off
  uint32_t streams = 1;          // the data is read side by side in at most so many; 1: in order
  std::optional<StreamConfig> stream;  // in place of DataConfig::source
  bool sample_weights = false;  // each sample of the data has a weight (DataConfig::weighted)
  std::vector<std::string> key_weights;  // inputs of the data whose keys have weights, by top
  double positive_weight = 1;            // of positive labels in the loss of training
  // The share of the negative samples that the training data holds. The loss knows, so that
  // predictions are those for all samples.
  double negative_rate = 1;
  double eval_negative_rate = 1;  // likewise of the evaluation data: each counts 1 / rate times
  bool skips_bad_data = false;    // on_bad_data: skip
  data::TarColumns columns;       // Tar
  uint64_t pass_memory_mb = 1024;
  uint64_t device_memory_mb = 0;       // of a pass's rows on a GPU; 0: what the device offers
  uint32_t day = 0;                    // today, for embeddings with day_id_decay
  uint64_t commit_every = 1;           // passes per durable commit; the others are in memory only
  std::optional<GroupSlot> gauc_slot;  // set if solver.eval_metrics contains GAUC
  std::string snapshot_form = "v2";    // format of HugeCTR's model files; or "v3"
  std::string gpu_products;  // float32, tf32 or bfloat16; empty: solver.enable_tf32 decides
  // "exact": XavierNorm without HugeCTR's 1/0.8796 factor; "torch": also PyTorch's defaults.
  std::string init_scheme = "hugectr";
};

// Type of the tensors between layers: solver.mixed_precision, cistern.activations,
// cistern.loss_scale.
enum class Activations { kFloat32, kFloat16, kBfloat16 };
struct PrecisionConfig {
  Activations activations = Activations::kFloat32;
  double loss_scale = 0;  // for kFloat16; 0: dynamic
};

struct ModelConfig {
  std::string path;  // the file's path, for messages
  PrecisionConfig precision;
  SolverConfig solver;
  OptimizerConfig optimizer;  // dense parameters; default of the embeddings
  DataConfig data;
  std::vector<EmbeddingConfig> embeddings;
  std::vector<LayerConfig> layers;  // dense layers and the loss, in file order
  bool draws_weights = true;  // false: dense weights start from 0, because others replace them
  CisternConfig cistern;
  // Every value of the file with overrides and defaults applied, in file order:
  // {"solver.batchsize", "4096"}. Used to compare the configurations of two runs.
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::string> notes;  // for the user: accepted settings without effect, and the like
};

struct LayerGrammar;  // grammar.h

// Reads and checks a model file.
//
// layers: the layer types that a file may have: LayerGrammars() (worker/model/layer/layer_list.h),
// or these and others. overrides: "solver.batchsize=4096". A value is JSON, or a bare word, which
// is a string. Layers are addressed by position or name: "layers.fc1.fc_param.num_output=200".
//
// kInvalidArgument: "model.json: solver.batchsiz: unknown key; did you mean 'batchsize'?".
absl::StatusOr<ModelConfig> LoadModelConfig(const std::string& path,
                                            const std::vector<std::string>& overrides,
                                            const std::vector<LayerGrammar>& layers);
absl::StatusOr<ModelConfig> ParseModelConfig(const std::string& text, const std::string& path,
                                             const std::vector<std::string>& overrides,
                                             const std::vector<LayerGrammar>& layers);

// The text of a model file with overrides applied; without overrides, the text itself.
absl::StatusOr<std::string> WithOverrides(const std::string& text,
                                          const std::vector<std::string>& overrides);

// The shape of a sample that the data readers check against; its label_dim counts the weight.
data::SampleShape ShapeOf(const DataConfig& data);

// Options for reading all of `source`, which replaces the model's own data sources.
data::DataSetOptions DataSetOf(const ModelConfig& config, const std::string& source);

}  // namespace cistern::model
