// The grammar of the file's top level, of "solver" and of "cistern".
#include "worker/model/config/grammar.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "common/value/accessor.h"
#include "common/value/value_layout.h"
#include "worker/model/config/grammar_keys.h"
#include "worker/model/config/model_config.h"

namespace cistern::model {
namespace {

using namespace grammar;

ObjectGrammar SolverGrammar() {
  return {
      "solver",
      {Word("lr_policy", {"fixed"}, "HugeCTR's only policy; the schedule is set in the optimizer")
           .Default("\"fixed\""),
       Count({"display", &SolverConfig::display}, "iterations between progress lines; 0: none")
           .MayChange()
           .Default("200"),
       Count({"max_iter", &SolverConfig::max_iter}, "iterations to train; 0: num_epochs decides")
           .MayChange()
           .Default("0")
           .AtMost(kAnySize),
       Count({"num_epochs", &SolverConfig::num_epochs}, "epochs to train; excludes max_iter")
           .MayChange()
           .Otherwise("1 if max_iter is 0"),
       Count({"snapshot", &SolverConfig::snapshot},
             "iterations between checkpoints: OUT/snapshot-N and, with max_iter, HugeCTR's model "
             "files; 0: never")
           .MayChange()
           .Default("0")
           .AtMost(kAnySize),
       String({"snapshot_prefix", &SolverConfig::snapshot_prefix},
              "prefix of the paths of HugeCTR's model files, relative to the current folder")
           .MayChange()
           .Default("\"./\""),
       Count({"batchsize", &SolverConfig::batchsize}, "samples per training step")
           .Required()
           .AtLeast(1),
       Count({"batchsize_eval", &SolverConfig::batchsize_eval},
             "samples per evaluation step; 0: batchsize")
           .MayChange()
           .Default("0"),
       Count({"eval_interval", &SolverConfig::eval_interval},
             "iterations between evaluations; 0: never")
           .MayChange()
           .Default("0")
           .AtMost(kAnySize),
       Count({"eval_batches", &SolverConfig::eval_batches},
             "batches per evaluation; 0: all of the evaluation data")
           .MayChange()
           .Default("0")
           .AtMost(kAnySize),
       Strings("eval_metrics",
               "metrics that an evaluation reports in addition to AUC and log loss: `AUC:0.8025` "
               "(training stops at this AUC), `AverageLoss`, `LogLoss`, `NE`, `COPC`, `PCOC`, "
               "`BucketError`, `ActualCTR`, `PredictedCTR`, `MAE`, `RMSE`, `SMAPE`, `HitRate`, "
               "`NDCG`, `GAUC` (needs "
               "cistern.gauc_slot)")
           .MayChange()
           .Default("[\"AUC\"]"),
       Word({"input_key_type", &SolverConfig::wide_keys}, {"I32", "I64"},
            "bytes of a key in Norm files: 4 or 8")
           .Default("\"I32\""),
       Count({"seed", &SolverConfig::seed}, "seed of all random numbers of a run; 0: a fixed seed")
           .Default("0")
           .AtMost(kAnySize),
       Word("mixed_precision", {"128", "256", "512", "1024"},
            "float16 activations with this loss scale (cistern.activations, cistern.loss_scale)")
           .Otherwise("single precision"),
       Strings("dense_model_file",
               "HugeCTR file with the dense weights that a new run starts from; its `.ntp.json` is "
               "read if it exists")
           .MayChange()
           .Otherwise("new weights"),
       Strings("dense model_file", "dense_model_file as HugeCTR's guide spells it")
           .MayChange()
           .Otherwise("new weights")
           .Note("read as dense_model_file"),
       Strings({"sparse_model_file", &SolverConfig::sparse_model_files},
               "HugeCTR files or folders with the rows that a new run starts from, one per "
               "embedding; an embedding with \"\" or without an entry starts from new weights")
           .MayChange()
           .Otherwise("new weights"),
       Strings("dense_opt_states_file", "3.x: optimizer state of the dense weights")
           .MayChange()
           .Otherwise("zero"),
       Anything("sparse_opt_states_file",
                "ignored: HugeCTR 3.x dumps it in the order of GPU memory; row state is read from "
                "the folder that sparse_model_file names, if that folder holds any")
           .MayChange(),
       Anything("gpu", "ignored: the device is an option of the run").MayChange(),
       Bool("algorithm_search", "selects GPU kernels in HugeCTR; no effect")
           .MayChange()
           .Default("true"),
       Count("max_eval_batches", "3.x name of eval_batches")
           .MayChange()
           .Otherwise("unset")
           .AtMost(kAnySize),
       Count("max_eval_samples", "3.x: eval_batches in samples, rounded up to whole batches")
           .Otherwise("unset")
           .AtMost(kAnySize),
       Number("auc_threshold", "3.x: like `AUC:x` in eval_metrics: training stops at this AUC")
           .Otherwise("never")
           .Above(0)
           .AtMost(1),
       String("export_predictions_prefix",
              "3.x: prefix of the prediction files, one per evaluation")
           .Otherwise("none")
           .Note("ignored: `cistern predict` writes predictions"),
       Bool({"enable_tf32_compute", &SolverConfig::enable_tf32},
            "3.x: matrix products on a GPU may round their inputs to 11 bits (see "
            "cistern.gpu_products)")
           .Default("false"),
       Anything("enable_overlap", "ignored: selects GPU streams in HugeCTR 3.x"),
       Anything("holistic_cuda_graph", "ignored: selects how HugeCTR 3.x launches GPU kernels"),
       Anything("device_layout", "ignored: selects the placement on GPUs in HugeCTR 3.x"),
       Bool({"cuda_graph", &SolverConfig::cuda_graph},
            "launch the GPU kernels of a step together, as a CUDA graph")
           .MayChange()
           .Default("true")}};
}

const ObjectGrammar& InitializerGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME.initializer",
      {Word("type", {"Uniform", "Normal", "Zero"}, "distribution of the initial weights of a row")
           .Required(),
       Number("range", "Uniform: between -range and range; Normal: the standard deviation")
           .Default("0.05")}};
  return grammar;
}

const ObjectGrammar& RowRuleGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME.optimizer",
      Keys{
          Word("type",
               {"SGD", "Adam", "AdaGrad", "AdaGradShared", "AdaGradStd", "AdaGradRowwise", "AdamW"},
               "update rule of the rows; AdaGradShared keeps one sum per row, AdaGradStd one per "
               "weight, with the same formula (PSLib); AdaGradRowwise keeps one sum per row, with "
               "FBGEMM's formula")
              .Required(),
          Number("learning_rate", "learning rate after the warm-up")
              .Otherwise("as in the top-level optimizer")} +
          AdamConstantKeys() +
          Keys{Number("initial_g2sum", "G0 of sqrt(G0 / (G0 + sum)) (AdaGradShared, AdaGradStd)")
                   .Default("3")
                   .Above(0),
               Number("weight_decay", "a step subtracts rate * weight_decay * w (AdamW)")
                   .Default("0.01"),
               Number("weight_bound", "weights are clamped to [-x, x]; 0: no bound").Default("0")} +
          ScheduleKeys()};
  return grammar;
}

std::vector<std::string> AccessorNames() {
  std::vector<std::string> names;
  for (const Accessor* accessor : Accessors()) names.emplace_back(accessor->name());
  return names;
}

const ObjectGrammar& EmbeddingExtrasGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME",
      {Object("initializer", JsonKind::kObject, InitializerGrammar(),
              "initial weights of a new row")
           .Otherwise("Uniform, 0.05"),
       Object("optimizer", JsonKind::kObject, RowRuleGrammar(), "update rule of the rows")
           .Otherwise("the layer's optimizer if set, else the top-level one"),
       Word("accessor", AccessorNames(),
            "ctr: a row stores its shows, its clicks and embed_w, and gets embedx_w once its score "
            "reaches embedx_threshold; embedding_vec_size is 1 + the length of embedx_w")
           .Default("\"embedding\""),
       Word("gradient", {"sum", "mean"},
            "gradient of a row that its update rule receives: of the loss summed over the samples "
            "of a step, or of their mean; sum is the mean times the number of samples (PSLib's)")
           .Otherwise("sum with the accessor ctr, otherwise mean"),
       Number("embedx_threshold", "ctr: score at which a row gets embedx_w; 0: at once")
           .Default("10"),
       Number("nonclk_coeff", "ctr: weight of a show without a click in the score").Default("0.1"),
       Number("click_coeff", "ctr: weight of a click in the score").Default("1"),
       Bool("show_scale", "ctr: divide gradients by the shows of the batch").Default("true"),
       Number("base_threshold", "ctr, save delta and base: minimum score of a saved row")
           .MayChange()
           .Otherwise("1.5"),
       Number("delta_threshold",
              "ctr, save delta: minimum growth of the score since the row was last saved")
           .MayChange()
           .Otherwise("0.25"),
       Number("delta_keep_days", "ctr, save delta and base: maximum unseen days of a saved row")
           .MayChange()
           .Otherwise("16"),
       Number("show_click_decay_rate", "ctr, shrink: factor applied to shows and clicks")
           .MayChange()
           .Otherwise("0.98")
           .Above(0)
           .AtMost(1),
       Number("delete_threshold", "ctr, shrink: rows with a lower score are deleted")
           .MayChange()
           .Otherwise("0.8"),
       Number("delete_after_unseen_days", "ctr, shrink: rows unseen for more days are deleted")
           .MayChange()
           .Otherwise("30"),
       Bool("day_id_decay",
            "ctr: a row stores the day on which it was last seen, and its shows and clicks decay "
            "with every day since; needs cistern.day")
           .Otherwise("a row counts its unseen days and decays at each shrink"),
       Count("max_rows",
             "rows that the table keeps: a commit removes those above it, apart from rows of its "
             "own pass; each of the servers' shards has an equal share")
           .Otherwise("any number")
           .AtLeast(1)
           .AtMost(kAnySize),
       Word("evict_by", {"age", "count", "show", "norm"},
            "which rows above max_rows go first: those whose last pass is the oldest, those that "
            "occurred least often in training (not ctr), those with the fewest shows (ctr), or "
            "those with the smallest weights; then the oldest")
           .Otherwise("age"),
       Count("expire_passes",
             "a commit removes rows that this many passes in a row did not have, its own included")
           .Otherwise("never")
           .AtLeast(1),
       Count("expire_days",
             "a commit removes rows that no pass has had for this many days (UTC, by the clock of "
             "the worker that leads)")
           .Otherwise("never")
           .AtLeast(1),
       Count("admit_after",
             "a row counts how often it occurs in training, and has no weights until the step "
             "after this count; until then it reads as zeros everywhere (not ctr, which has "
             "embedx_threshold)")
           .Otherwise("every row has weights from the start")
           .AtLeast(1)
           .AtMost(kMaxAdmitAfter),
       Word(
           "row_type", {"float32", "bfloat16"},
           "how servers store and send weights and their state. bfloat16: half the bytes; training "
           "computes with float32, and rounds rows at random, in proportion, at the end of a pass; "
           "needs update_type Local")
           .Default("\"float32\"")}};
  return grammar;
}

const ObjectGrammar& GroupSlotGrammar() {
  static const ObjectGrammar grammar{
      "cistern.gauc_slot",
      {String("input", "top of a sparse input of the Data layer").MayChange().Required(),
       Count("slot", "index of the slot in that input, from 0; a sample has at most one key in it")
           .MayChange()
           .Required()}};
  return grammar;
}

const ObjectGrammar& ColumnsGrammar() {
  static const ObjectGrammar grammar{
      "cistern.columns",
      {Strings({"label", &data::TarColumns::label}, "field of each label")
           .Otherwise("the field \"label\""),
       Strings({"dense", &data::TarColumns::dense}, "field of each dense feature")
           .Otherwise("the array \"dense\""),
       Strings({"slots", &data::TarColumns::slots},
               "field of each slot, over all inputs in order; text in it is hashed together with "
               "the name")
           .Otherwise("the array \"slots\""),
       Strings({"weights", &data::TarColumns::weights},
               "field of the weights of each slot of key_weights, in order")
           .Otherwise("the array \"weights\"")}};
  return grammar;
}

const ObjectGrammar& StreamGrammar() {
  static const ObjectGrammar grammar{
      "cistern.stream",
      {String({"source", &StreamConfig::source},
              "data that never ends, in place of layers[0].source: a folder or s3://BUCKET/PREFIX "
              "whose files are read once each, or kafka://HOST:PORT,.../TOPIC,...; empty: none")
           .Required(),
       Number({"seconds", &StreamConfig::seconds},
              "a pass ends this long after its first sample came in")
           .MayChange()
           .Otherwise("10")
           .AtLeast(0),
       Count({"samples", &StreamConfig::samples},
             "or with this many samples, a few more with several partitions; 0: no limit")
           .MayChange()
           .Otherwise("0"),
       String({"recipe", &StreamConfig::recipe},
              "folder of the recipe by which text becomes samples; none: the data has the model's "
              "own format")
           .MayChange()
           .Otherwise("the run's own, or that beside layers[0].source"),
       Word({"complete", &StreamConfig::complete}, {"name", "age", "marker"},
            "when a file of a folder is complete: name: once it has its name (writers write "
            "elsewhere and rename); age: once it was not written for age_seconds; marker: once "
            "_SUCCESS is beside it")
           .MayChange()
           .Otherwise("name"),
       String({"properties", &StreamConfig::properties},
              "Kafka: a file of librdkafka's properties, name=value a line (TLS, SASL)")
           .MayChange()
           .Otherwise("none"),
       Word({"on_lost", &StreamConfig::skips_lost}, {"stop", "skip"},
            "Kafka: messages that were deleted before they were trained: stop ends the run, skip "
            "continues with what is left")
           .MayChange()
           .Otherwise("stop"),
       Number({"age_seconds", &StreamConfig::age_seconds}, "complete: age")
           .MayChange()
           .Otherwise("60")
           .AtLeast(0),
       Bool({"score", &StreamConfig::scores},
            "score each pass before it is trained: AUC, log loss and solver.eval_metrics in the "
            "event of the pass; not with update_type Global")
           .MayChange()
           .Otherwise("true"),
       Count({"score_samples", &StreamConfig::score_samples},
             "samples of a pass that are scored at most, in whole batches spread over it; 0: all")
           .MayChange()
           .Otherwise("65536"),
       Word({"until", &StreamConfig::ends_when_empty}, {"stopped", "empty"},
            "when the run ends: once it is stopped, or once all samples that are there are "
            "trained")
           .MayChange()
           .Otherwise("stopped")}};
  return grammar;
}

const ObjectGrammar& CisternGrammar() {
  static const ObjectGrammar grammar{
      "cistern",
      {Number({"embedding_l2", &CisternConfig::embedding_l2},
              "lambda of the penalty (lambda / 2) * |w|^2 on each distinct row of a batch")
           .Default("0"),
       Number({"clip_norm", &CisternConfig::clip_norm},
              "gradients are scaled down to this global norm; 0: never")
           .Default("0"),
       Word({"not_finite", &CisternConfig::skips_not_finite}, {"stop", "skip"},
            "a step whose loss or gradient is not finite, or too large to be squared: stop ends "
            "the run before that step, skip leaves the step out and counts it (skipped_steps)")
           .Default("\"stop\""),
       Bool({"eval_every_epoch", &CisternConfig::eval_every_epoch},
            "evaluate at the end of each epoch")
           .Default("false"),
       Number({"plateau_factor", &CisternConfig::plateau_factor},
              "factor on the learning rate after an epoch without gain; 0: never")
           .Default("0")
           .Below(1),
       Number({"plateau_min_lr", &CisternConfig::plateau_min_lr},
              "lower bound of the learning rate that plateau_factor reduces")
           .Default("0"),
       Word(
           {"monitor", &CisternConfig::watches_log_loss}, {"AUC", "LogLoss"},
           "what decides whether an epoch is better than the best one: the AUC, or the log loss as "
           "a share of that of a constant; an epoch with more log loss than a constant is always "
           "worse than one with less")
           .Otherwise("AUC"),
       Number({"plateau_min_gain", &CisternConfig::plateau_min_gain},
              "increase of the AUC, or decrease of that share, that counts as a gain")
           .Default("1e-6"),
       Count({"patience", &CisternConfig::patience},
             "stop after this many consecutive epochs without gain; 0: never")
           .MayChange()
           .Default("0"),
       Bool({"keep_best", &CisternConfig::keep_best}, "end with the state of the best epoch")
           .MayChange()
           .Default("false"),
       Number({"calibrate", &CisternConfig::calibrate},
              "share of positive labels. At the end of each epoch, the bias of the layer with "
              "bias_value moves so that the mean prediction on the evaluation data is the share of "
              "positives there, shrunk toward this one by 100 positives, unless chance does not "
              "explain the difference; on a stream, at the end of each pass, so that the mean "
              "prediction on it is the share of the stream so far; 0: never")
           .Default("0")
           .Below(1),
       Bool({"calibrate_exact", &CisternConfig::calibrate_exact},
            "the mean prediction on the evaluation data becomes calibrate itself: for rows that "
            "were held out at random of the rows whose share it is")
           .Default("false"),
       Bool({"shuffle", &CisternConfig::shuffle},
            "train on the samples of a pass in a random order")
           .Default("false"),
       Bool({"shuffle_files", &CisternConfig::shuffle_files},
            "read the files of the training data in a random order, a function of seed and epoch")
           .Otherwise("false"),
       Count(
           {"shuffle_buffer", &CisternConfig::shuffle_buffer},
           "samples in memory from which the next one is drawn at random; the order is a function "
           "of seed and epoch; 0: the order of the files")
           .Otherwise("0")
           .AtMost(1e9),
       Count({"streams", &CisternConfig::streams},
             "streams into which the training data is divided: whole files in turn, or ranges of "
             "samples if there are fewer files; a batch takes equal parts of all of them, and each "
             "of several workers reads only its streams; 1: the order of the files, read by all "
             "workers")
           .Otherwise("1")
           .AtLeast(1)
           .AtMost(4096),
       Object({"stream", &CisternConfig::stream}, JsonKind::kObject, StreamGrammar(),
              "train on data that never ends"),
       Bool({"sample_weights", &CisternConfig::sample_weights},
            "each sample has a weight, a number from 0 to 1e9 that the data files hold as one more "
            "label, after the label_dim labels of layers[0]; the loss is sum(weight * loss) / "
            "sum(weight) of the batch, and the metrics are weighted; false: every weight is 1")
           .Otherwise("false"),
       Strings({"key_weights", &CisternConfig::key_weights},
               "inputs of layers[0], by `top`, whose keys have weights: combiner sum adds weight * "
               "row, mean divides that by the sum of the weights (a sum of 0 gives zeros)")
           .Otherwise("no input"),
       Number({"positive_weight", &CisternConfig::positive_weight},
              "weight of the positive labels in the loss of training, as PyTorch's pos_weight; it "
              "multiplies the predicted odds")
           .Otherwise("1")
           .Above(0)
           .AtMost(1e6),
       Number({"negative_rate", &CisternConfig::negative_rate},
              "the share of the negative samples that the training data holds, if they were "
              "sampled; predictions are those for all samples")
           .Otherwise("1")
           .Above(0)
           .AtMost(1),
       Number({"eval_negative_rate", &CisternConfig::eval_negative_rate},
              "the share of the negative samples that layers[0].eval_source holds, if it was "
              "sampled, too: each weighs 1 / eval_negative_rate in all metrics")
           .Otherwise("1")
           .Above(0)
           .AtMost(1),
       Word({"on_bad_data", &CisternConfig::skips_bad_data}, {"stop", "skip"},
            "a data file that is missing, cut short, corrupt or too new: stop ends the run, skip "
            "leaves out the rest of the file and counts it by cause (skipped_data)")
           .MayChange()
           .Otherwise("stop"),
       Object({"columns", &CisternConfig::columns}, JsonKind::kObject, ColumnsGrammar(),
              "Tar: the fields of a sample's .json")
           .Otherwise("label, dense and slots"),
       Count(
           {"pass_memory_mb", &CisternConfig::pass_memory_mb},
           "memory for the rows and batches of a pass, in MiB; on a GPU, for the batches alone, "
           "in host memory; up to three passes are in memory: one in training, one being "
           "prepared, and the rows of one being committed; on a GPU another one is read ahead, and "
           "the memory of one is kept for the next")
           .MayChange()
           .Default("1024")
           .AtLeast(1)
           .AtMost(1e9),
       Count({"device_memory_mb", &CisternConfig::device_memory_mb},
             "GPU: device memory for the rows of a pass, in MiB; at most what the device offers")
           .MayChange()
           .Otherwise("what the device offers")
           .AtLeast(1)
           .AtMost(1e9),
       Count({"commit_every", &CisternConfig::commit_every},
             "passes between durable commits, which survive a crash; the commits in between are in "
             "memory only, and leave out rows that the next pass holds")
           .MayChange()
           .Default("1")
           .AtLeast(1)
           .AtMost(1e9),
       Object("gauc_slot", JsonKind::kObject, GroupSlotGrammar(),
              "the slot whose key is the group of a sample for GAUC, e.g. the user"),
       Word({"snapshot_form", &CisternConfig::snapshot_form}, {"v2", "v3"},
            "format of HugeCTR's model files in a snapshot: that of 2.3, or that of 3.x, which can "
            "hold optimizer state")
           .MayChange()
           .Default("\"v2\""),
       Word({"gpu_products", &CisternConfig::gpu_products}, {"float32", "tf32", "bfloat16"},
            "precision to which matrix products on a GPU may round their inputs: 24, 11 or 8 bits; "
            "sums are float32; the CPU computes in float32")
           .Otherwise("float32, or tf32 with enable_tf32_compute"),
       Word("activations", {"float32", "float16", "bfloat16"},
            "type of the activations and their gradients; weights, optimizer state and all sums "
            "are float32")
           .Otherwise("float32, or float16 with mixed_precision"),
       Word("loss_scale",
            {"dynamic", "1", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768",
             "65536"},
            "factor that keeps small float16 gradients from underflowing; dynamic: 65536 at first, "
            "halved after a step that overflows, doubled after 2000 consecutive steps that do not. "
            "A step that overflows is skipped and counted (skipped_steps)")
           .Otherwise("mixed_precision, or dynamic"),
       Word(
           {"init_scheme", &CisternConfig::init_scheme}, {"hugectr", "exact", "torch"},
           "hugectr: XavierNorm includes HugeCTR's factor 1/0.87962566; exact: it does not; torch: "
           "nor there, and what the file does not set starts as PyTorch's nn.Linear and "
           "nn.Embedding do")
           .Default("\"hugectr\""),
       Count({"day", &CisternConfig::day},
             "day number of the training data, for embeddings with day_id_decay")
           .Default("0")
           .AtMost(1 << 24),
       Object("embeddings", JsonKind::kNamedObjects, EmbeddingExtrasGrammar(),
              "settings of each embedding layer, by its name, that HugeCTR has no key for")}};
  return grammar;
}

}  // namespace

std::vector<std::string> ObjectGrammar::key_names() const {
  std::vector<std::string> names;
  for (const KeyGrammar& key : keys) names.push_back(key.name);
  return names;
}

namespace {

// Whether a key of `object` at `path` may change; of layers, any type's.
bool MayChangeIn(const ObjectGrammar& object, absl::string_view path,
                 const std::vector<LayerGrammar>& layers) {
  return std::any_of(object.keys.begin(), object.keys.end(),
                     [path, &layers](const KeyGrammar& key) {
                       absl::string_view rest = path;
                       if (!absl::ConsumePrefix(&rest, key.name)) return false;
                       if (rest.empty()) return key.may_change;
                       const bool is_indexed = rest[0] == '[';
                       if (is_indexed)
                         rest.remove_prefix(std::min(rest.find(']'), rest.size() - 1) + 1);
                       if (!absl::ConsumePrefix(&rest, ".")) return false;
                       if (key.kind == JsonKind::kLayers) {
                         return std::any_of(layers.begin(), layers.end(),
                                            [rest, &layers](const LayerGrammar& layer) {
                                              return MayChangeIn(layer.object, rest, layers);
                                            });
                       }
                       if (key.object == nullptr) return false;
                       if (key.kind != JsonKind::kNamedObjects)
                         return MayChangeIn(*key.object, rest, layers);
                       // A name may have dots in it; keys have none.
                       const size_t dot = rest.rfind('.');
                       return dot != absl::string_view::npos &&
                              MayChangeIn(*key.object, rest.substr(dot + 1), layers);
                     });
}

}  // namespace

bool MayChangeOnResume(const std::string& path, const std::vector<LayerGrammar>& layers) {
  return MayChangeIn(FileGrammar(), path, layers);
}

const ObjectGrammar& FileGrammar() {
  static const ObjectGrammar solver = SolverGrammar();
  static const ObjectGrammar grammar{
      "the file",
      {Object({"solver", &ModelConfig::solver}, JsonKind::kObject, solver,
              "length of training, batch sizes, intervals")
           .Required(),
       Object("optimizer", JsonKind::kObject, OptimizerGrammar(), "update rule and learning rate")
           .Required(),
       MakeKey("layers", JsonKind::kLayers,
               "the Data layer, then embeddings, dense layers and one loss")
           .Required(),
       Object({"cistern", &ModelConfig::cistern}, JsonKind::kObject, CisternGrammar(),
              "settings that HugeCTR has no key for")
           .Default("{}")}};
  return grammar;
}

}  // namespace cistern::model
