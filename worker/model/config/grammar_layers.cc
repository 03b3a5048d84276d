// The grammar of each layer type.
#include "worker/data/format/format_list.h"
#include "worker/model/config/config_readers.h"
#include "worker/model/config/grammar_keys.h"
#include "worker/model/config/layer_grammar.h"

namespace cistern::model {
namespace {

using namespace grammar;

const ObjectGrammar& LabelGrammar() {
  static const ObjectGrammar grammar{
      "label",
      {String({"top", &DataConfig::label_top}, "name of the tensor").Required(),
       Count({"label_dim", &DataConfig::label_dim}, "labels per sample")
           .Required()
           .AtLeast(1)
           .AtMost(1024)}};
  return grammar;
}
const ObjectGrammar& DenseGrammar() {
  static const ObjectGrammar grammar{
      "dense",
      {String({"top", &DataConfig::dense_top}, "name of the tensor").Required(),
       Count({"dense_dim", &DataConfig::dense_dim}, "dense features per sample; may be 0")
           .Required()
           .AtMost(1 << 20)}};
  return grammar;
}
const ObjectGrammar& SparseGrammar() {
  static const ObjectGrammar grammar{
      "sparse",
      {String("top", "name of the input").Required(),
       Word("type", {"DistributedSlot", "LocalizedSlot"},
            "where HugeCTR places the rows; here both types keep them on the servers")
           .Default("\"DistributedSlot\""),
       Count("slot_num", "slots of this input").Required().AtLeast(1).AtMost(1 << 20),
       Count("max_feature_num_per_sample",
             "keys that one sample may hold in this input; 0: no bound")
           .MayChange()
           .Default("0"),
       Count("max_nnz", "keys that one slot may hold; 0: no bound").MayChange().Default("0"),
       MakeKey("nnz_per_slot", JsonKind::kCountOrCounts,
               "3.x form of max_nnz: one number for all slots, or one per slot")
           .Otherwise("no bound")
           .AtLeast(1),
       Bool("is_fixed_length", "3.x: every slot of the input holds the same number of keys")
           .Otherwise("unset")
           .Note("no effect: a slot holds as many keys as the sample has"),
       MakeKey("sequence_lengths", JsonKind::kCountOrCounts,
               "ours: places of a slot whose keys are not pooled: each has an embedding row of its "
               "own, and places without a key a row of zeros; one number for all slots, or one per "
               "slot; 0: the slot is pooled")
           .Otherwise("all slots are pooled")
           .AtMost(1 << 16),
       Word("sequence_keeps", {"first", "last"},
            "ours: which keys have a place if a sample has more than `sequence_lengths`")
           .Default("\"last\""),
       Bool(
           "sequence_reversed",
           "ours: the last key of a sample has the first place, as the newest of a history that is "
           "written as it happened")
           .Default("false"),
       String("length_top",
              "ours: name of a tensor [b, n] with the lengths of the n sequences of this input: "
              "their keys in a sample")
           .Otherwise("none")}};
  return grammar;
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const data::DataFormatEntry& entry : data::DataFormats()) names.push_back(entry.name);
  return names;
}

ObjectGrammar DataLayerGrammar() {
  return {
      "Data",
      LayerKeys() +
          Keys{Word("format", FormatNames(), "format of the files: docs/formats.md")
                   .Default("\"Norm\""),
               String({"source", &DataConfig::source},
                      "training data: file lists, data files and patterns such as "
                      "`part-{000..127}.tar` and `*.parquet`, separated by commas; paths "
                      "may be s3://, gs:// and hdfs://")
                   .Required(),
               String({"eval_source", &DataConfig::eval_source}, "evaluation data: as source")
                   .MayChange()
                   .Otherwise("no evaluation"),
               Strings({"keyset", &DataConfig::keysets},
                       "3.x: keyset files that together must hold all keys of the training data; "
                       "optional, because keys are collected while the data is read")
                   .MayChange()
                   .Otherwise("not checked"),
               Word({"check", &DataConfig::check}, {"None", "Sum"},
                    "Norm: whether records carry a checksum")
                   .Default("\"None\""),
               Object("label", JsonKind::kObject, LabelGrammar(), "the labels").Required(),
               Object("dense", JsonKind::kObject, DenseGrammar(), "the dense features")
                   .Otherwise("none"),
               Object("sparse", JsonKind::kObjects, SparseGrammar(),
                      "the sparse inputs, in the order of the files")
                   .Required(),
               MakeKey("cache_eval_data", JsonKind::kBoolOrCount,
                       "evaluation data is read once and kept in memory: all of it, or this many "
                       "batches")
                   .MayChange()
                   .Otherwise("what fits in one pass is kept"),
               Count("num_samples", "Raw: number of training samples to use")
                   .Otherwise("all")
                   .AtLeast(1)
                   .AtMost(kAnySize),
               Count("eval_num_samples", "Raw: number of evaluation samples to use")
                   .MayChange()
                   .Otherwise("all")
                   .AtLeast(1)
                   .AtMost(kAnySize),
               Bool("float_label_dense",
                    "Raw: labels and dense features are floats; false: integers, and a dense "
                    "feature x becomes log(x + 1)")
                   .Otherwise("false"),
               MakeKey("slot_size_array", JsonKind::kCounts,
                       "Raw, Parquet: number of keys of each slot, over all inputs in order; the "
                       "sum of the sizes before a slot is added to its keys, so a slot of size 0 "
                       "shares the keys of the next one with a size")
                   .Otherwise("keys are unchanged")
                   .AtMost(kAnySize)}};
}

const ObjectGrammar& EmbeddingParameterGrammar() {
  static const ObjectGrammar grammar{
      "sparse_embedding_hparam",
      {Count("embedding_vec_size", "floats per slot").Required().AtLeast(1).AtMost(4096),
       Word("combiner", {"0", "1", "sum", "mean"},
            "how the rows of a slot are combined: 0 sum, 1 mean")
           .Required(),
       Count("max_vocabulary_size_per_gpu",
             "no effect on training: tables grow on the servers; `cistern plan` reads it")
           .Otherwise("unset")
           .AtMost(kAnySize),
       Count("workspace_size_per_gpu_in_mb", "3.x: GPU memory for the rows; no effect")
           .Otherwise("unset")
           .Note("ignored: tables grow on the servers"),
       MakeKey("slot_size_array", JsonKind::kCounts,
               "number of keys of each slot: the initial weights of a Localized embedding's rows "
               "are within 1 / sqrt(size of the slot), HugeCTR's model files derive the slot of a "
               "key from the sizes, and a one-hot embedding refuses keys outside them; tables grow "
               "on the servers regardless; `cistern plan` reads the sizes")
           .Otherwise("unset")
           .AtMost(kAnySize)}};
  return grammar;
}

ObjectGrammar EmbeddingGrammar(const std::string& type) {
  return {
      type,
      GraphKeys() +
          Keys{Object("sparse_embedding_hparam", JsonKind::kObject, EmbeddingParameterGrammar(),
                      "sizes of the embedding")
                   .Required(),
               Object("optimizer", JsonKind::kObject, OptimizerGrammar(),
                      "update rule of this embedding's rows")
                   .Otherwise("the top-level one"),
               Anything(
                   "plan_file1",
                   "ignored: HugeCTR's own test models contain it, but HugeCTR does not read it"),
               Anything("plan_file",
                        "ignored: rows are exchanged with the servers, not "
                        "between GPUs")}};
}

absl::Status ReadLoss(const Json& json, const std::string& path, LayerConfig* layer) {
  auto& config = std::any_cast<LossConfig&>(layer->own_config);
  if (config.regularizer.empty()) return absl::OkStatus();
  if (!json.contains("lambda")) {
    return ConfigError(path + ".lambda",
                       absl::StrCat("missing; regularizer ", config.regularizer, " needs it"));
  }
  config.lambda = json.at("lambda");
  return absl::OkStatus();
}

LayerGrammar Loss(const std::string& type, const std::string& inputs, const Keys& keys) {
  LayerGrammar loss{
      type,
      LayerRole::kLoss,
      {type,
       LayerKeys() +
           Keys{Strings({"bottom", &LayerConfig::bottoms}, inputs).Required(),
                Strings({"top", &LayerConfig::tops}, "name of the loss").Default("[\"loss\"]")} +
           keys +
           Keys{Word({"regularizer", &LossConfig::regularizer}, {"L1", "L2"},
                     "regularizer of all dense weights; needs lambda")
                    .Otherwise("none")
                    .ForTraining(),
                Number("lambda",
                       "L1: lambda / batchsize * sum |w|; L2: lambda / (2 * "
                       "batchsize) * sum w^2")
                    .Otherwise("none")}},
      "",
      ReadLoss};
  loss.store_own = StoreOwn<LossConfig>;
  return loss;
}

}  // namespace

std::vector<LayerGrammar> WithDenseLayers(const std::vector<LayerGrammar>& dense) {
  const std::string distributed = "DistributedSlotSparseEmbeddingHash";
  const std::string localized = "LocalizedSlotSparseEmbeddingHash";
  const std::string one_hot = "LocalizedSlotSparseEmbeddingOneHot";
  std::vector<LayerGrammar> layers = {
      {"Data", LayerRole::kData, DataLayerGrammar(), ""},
      {distributed, LayerRole::kEmbedding, EmbeddingGrammar(distributed), ""},
      {localized, LayerRole::kEmbedding, EmbeddingGrammar(localized), ""},
      {one_hot, LayerRole::kEmbedding, EmbeddingGrammar(one_hot), ""}};
  layers.insert(layers.end(), dense.begin(), dense.end());
  for (LayerGrammar& loss :
       std::vector<LayerGrammar>{Loss("BinaryCrossEntropyLoss", "logit, label", {}),
                                 Loss("CrossEntropyLoss", "logits of two classes, label", {}),
                                 Loss("MultiCrossEntropyLoss", "logits, labels",
                                      {MakeKey({"target_weight", &LossConfig::target_weight},
                                               JsonKind::kNumbers, "weight of each label's loss")
                                           .Required()
                                           .ForTraining()})}) {
    layers.push_back(std::move(loss));
  }
  return layers;
}

const LayerGrammar* FindLayerGrammar(const std::string& type,
                                     const std::vector<LayerGrammar>& layers) {
  for (const LayerGrammar& grammar : layers) {
    if (grammar.type == type) return &grammar;
  }
  return nullptr;
}

}  // namespace cistern::model
