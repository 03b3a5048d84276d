// The keys of the file, of its solver and of the "cistern" object.
#include "worker/model/config/grammar.h"

#include "worker/model/config/grammar_keys.h"

namespace cistern {
namespace {

using namespace grammar;

ObjectGrammar SolverGrammar() {
  return {
      "solver",
      {Word("lr_policy", {"fixed"}, "HugeCTR knows one policy; the schedule is in the optimizer")
           .Default("\"fixed\""),
       Count("display", "iterations between two lines of progress; 0: none").Default("200"),
       Count("max_iter", "iterations to train; 0: by num_epochs").Default("0").AtMost(kAnySize),
       Count("num_epochs", "times to go through the data; excludes max_iter")
           .Otherwise("1 where max_iter is 0 too"),
       Count("snapshot",
             "iterations between two checkpoints: OUT/snapshot-N and, with max_iter, HugeCTR's "
             "model files; 0: never")
           .Default("0")
           .AtMost(kAnySize),
       String("snapshot_prefix",
              "put before the names of HugeCTR's model files; counts from the current folder")
           .Default("\"./\""),
       Count("batchsize", "samples of a training step").Required().AtLeast(1),
       Count("batchsize_eval", "samples of an evaluation step; 0: batchsize").Default("0"),
       Count("eval_interval", "iterations between two evaluations; 0: never")
           .Default("0")
           .AtMost(kAnySize),
       Count("eval_batches", "batches of an evaluation; 0: all of the evaluation data")
           .Default("0")
           .AtMost(kAnySize),
       Strings("eval_metrics",
               "what an evaluation says beside AUC and log loss: `AUC:0.8025` (training stops once "
               "it is reached), `AverageLoss`, `LogLoss`, `NE`, `COPC`, `PCOC`, `BucketError`, "
               "`ActualCTR`, `PredictedCTR`, `MAE`, `RMSE`, `GAUC` (needs cistern.gauc_slot)")
           .Default("[\"AUC\"]"),
       Word("input_key_type", {"I32", "I64"}, "bytes of a key in Norm files: 4 or 8")
           .Default("\"I32\""),
       Count("seed", "of every random number of a run; 0: a fixed one")
           .Default("0")
           .AtMost(kAnySize),
       Word("mixed_precision", {"128", "256", "512", "1024"},
            "activations are float16, and this is the loss scale (cistern.activations, "
            "cistern.loss_scale)")
           .Otherwise("single precision"),
       Strings("dense_model_file",
               "dense weights that a fresh run starts from, a file of HugeCTR's; the `.ntp.json` "
               "beside it is read if there")
           .Otherwise("from new weights"),
       Strings("dense model_file", "the same, as HugeCTR's guide spells it")
           .Otherwise("from new weights")
           .Note("read as dense_model_file"),
       Strings("sparse_model_file",
               "rows that a fresh run starts from, a file or folder of HugeCTR's for each "
               "embedding; \"\", or too few: the others start from new weights")
           .Otherwise("from new weights"),
       Strings("dense_opt_states_file", "3.x: the optimizer's state of the dense weights")
           .Otherwise("zero"),
       Anything("sparse_opt_states_file",
                "ignored: HugeCTR 3.x dumps it in the order of a GPU's memory; the state of rows "
                "is read from the folder that sparse_model_file names, where it holds any"),
       Anything("gpu", "ignored: --device of cistern train says where it trains"),
       Bool("algorithm_search", "a choice of GPU kernels; no effect").Default("true"),
       Count("max_eval_batches", "3.x: eval_batches").Otherwise("nothing").AtMost(kAnySize),
       Count("max_eval_samples", "3.x: eval_batches, counted in samples and rounded up to batches")
           .Otherwise("nothing")
           .AtMost(kAnySize),
       Number("auc_threshold", "3.x: as `AUC:x` in eval_metrics: training stops once it is reached")
           .Otherwise("never")
           .Above(0)
           .AtMost(1),
       String("export_predictions_prefix", "3.x: a file of predictions for each evaluation")
           .Otherwise("none")
           .Note("ignored: `cistern predict` writes predictions"),
       Bool(
           "enable_tf32_compute",
           "3.x: matrix products on a GPU may round their inputs to 11 bits (cistern.gpu_products)")
           .Default("false"),
       Anything("enable_overlap", "ignored: a choice of GPU streams (3.x)"),
       Anything("holistic_cuda_graph", "ignored: a way to launch GPU kernels (3.x)"),
       Anything("device_layout", "ignored: a placement on GPUs (3.x)"),
       Bool("cuda_graph", "a GPU is given the kernels of a step at once, as a CUDA graph")
           .Default("true")}};
}

const ObjectGrammar& InitializerGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME.initializer",
      {Word("type", {"Uniform", "Normal", "Zero"}, "distribution of the first weights of a row")
           .Required(),
       Number("range", "Uniform: between -range and range; Normal: the standard deviation")
           .Default("0.05")}};
  return grammar;
}

const ObjectGrammar& RowRuleGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME.optimizer",
      Keys{Word("type", {"SGD", "Adam", "AdaGrad", "AdaGradShared", "AdaGradStd"},
                "rule of the rows; AdaGradShared keeps one sum a row, AdaGradStd one a weight with "
                "the same formula (PSLib)")
               .Required(),
           Number("learning_rate", "rate after the warm-up")
               .Otherwise("as in the top-level optimizer")} +
          AdamConstantKeys() +
          Keys{Number("initial_g2sum", "G0 of sqrt(G0 / (G0 + sum)) (AdaGradShared, AdaGradStd)")
                   .Default("3")
                   .Above(0),
               Number("weight_bound", "weights are kept within +-this; 0: no bound").Default("0")} +
          ScheduleKeys()};
  return grammar;
}

const ObjectGrammar& EmbeddingExtrasGrammar() {
  static const ObjectGrammar grammar{
      "cistern.embeddings.NAME",
      {Object("initializer", JsonKind::kObject, InitializerGrammar(), "first weights of a new row")
           .Otherwise("Uniform, 0.05"),
       Object("optimizer", JsonKind::kObject, RowRuleGrammar(), "rule of the rows")
           .Otherwise("the layer's optimizer, else the top-level one"),
       Word("accessor", {"embedding", "ctr"},
            "ctr: a row keeps its shows and clicks, holds embed_w and, once its score reaches "
            "embedx_threshold, embedx_w; embedding_vec_size is 1 + the length of embedx_w")
           .Default("\"embedding\""),
       Number("embedx_threshold", "ctr: score at which embedx_w appears; 0: at once").Default("10"),
       Number("nonclk_coeff", "ctr: weight of a show without click in the score").Default("0.1"),
       Number("click_coeff", "ctr: weight of a click in the score").Default("1"),
       Bool("show_scale", "ctr: gradients are divided by the shows of the batch").Default("true"),
       Number("base_threshold", "ctr, save delta and base: least score").Otherwise("1.5"),
       Number("delta_threshold", "ctr, save delta: least growth of the score since the last one")
           .Otherwise("0.25"),
       Number("delta_keep_days", "ctr, save delta and base: most days unseen").Otherwise("16"),
       Number("show_click_decay_rate", "ctr, shrink: shows and clicks are multiplied by this")
           .Otherwise("0.98")
           .Above(0)
           .AtMost(1),
       Number("delete_threshold", "ctr, shrink: rows below this score go").Otherwise("0.8"),
       Number("delete_after_unseen_days", "ctr, shrink: rows unseen for longer go").Otherwise("30"),
       Bool("day_id_decay",
            "ctr: a row keeps the day it was seen last, and its shows and clicks fade with every "
            "day since; needs cistern.day")
           .Otherwise("a row counts the days it was not seen, and fades at each shrink")}};
  return grammar;
}

const ObjectGrammar& GroupSlotGrammar() {
  static const ObjectGrammar grammar{
      "cistern.gauc_slot",
      {String("input", "top of a sparse input of the Data layer").Required(),
       Count("slot", "number of the slot in it, from 0; a sample has one key there at most")
           .Required()}};
  return grammar;
}

const ObjectGrammar& CisternGrammar() {
  static const ObjectGrammar grammar{
      "cistern",
      {Number("embedding_l2", "lambda of (lambda / 2) * |w|^2, for each distinct row of a batch")
           .Default("0"),
       Number("clip_norm", "gradients are scaled down to this global norm; 0: never").Default("0"),
       Word("not_finite", {"stop", "skip"},
            "a step whose loss or gradient is not a finite number, or too large to be squared: the "
            "run ends before it, or goes "
            "on without it and counts it (skipped_steps)")
           .Default("\"stop\""),
       Bool("eval_every_epoch", "evaluate at the end of each epoch").Default("false"),
       Number("plateau_factor",
              "the learning rate is multiplied by this after an epoch without gain; 0: never")
           .Default("0")
           .Below(1),
       Number("plateau_min_lr", "the plateau does not take the rate below this").Default("0"),
       Number("plateau_min_gain", "growth of the AUC that counts as gain").Default("1e-6"),
       Count("patience", "stop after this many epochs in a row without gain; 0: never")
           .Default("0"),
       Bool("keep_best", "the state of the best epoch is the final one").Default("false"),
       Bool("shuffle", "train on the samples of a pass in a random order").Default("false"),
       Count("pass_memory_mb", "MiB that the rows and batches of a pass may take")
           .Default("1024")
           .AtLeast(1)
           .AtMost(1e9),
       Count("commit_every",
             "passes between two commits that survive a crash; those between are in memory only")
           .Default("1")
           .AtLeast(1)
           .AtMost(1e9),
       Object("gauc_slot", JsonKind::kObject, GroupSlotGrammar(),
              "the slot whose key tells the groups of GAUC apart, e.g. the user"),
       Word("snapshot_form", {"v2", "v3"},
            "HugeCTR's model files that a snapshot writes: those of 2.3, or those of 3.x, which "
            "have room for the optimizer's state")
           .Default("\"v2\""),
       Word("gpu_products", {"float32", "tf32", "bfloat16"},
            "what matrix products on a GPU may round their inputs to: 24, 11 or 8 bits, sums are "
            "float32; the CPU computes in float32")
           .Otherwise("float32, or tf32 with enable_tf32_compute"),
       Word(
           "activations", {"float32", "float16", "bfloat16"},
           "what flows between layers, forward and back; weights, optimizer state and all sums are "
           "float32")
           .Otherwise("float32, or float16 with mixed_precision"),
       Word(
           "loss_scale",
           {"dynamic", "1", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768",
            "65536"},
           "what gradients of float16 are multiplied by, so that small ones are not lost; dynamic: "
           "65536 at first, half after a step that overflows, twice after 2000 that do not. A step "
           "that overflows is left out and counted (skipped_steps)")
           .Otherwise("mixed_precision, or dynamic"),
       Word("init_scheme", {"hugectr", "exact"},
            "XavierNorm with HugeCTR's factor 1/0.87962566, or without it")
           .Default("\"hugectr\""),
       Count("day", "number of the day that is trained, for embeddings with day_id_decay")
           .Default("0")
           .AtMost(1 << 24),
       Object("embeddings", JsonKind::kNamedObjects, EmbeddingExtrasGrammar(),
              "by the name of the embedding layer: what HugeCTR has no word for")}};
  return grammar;
}

}  // namespace

std::vector<std::string> ObjectGrammar::key_names() const {
  std::vector<std::string> names;
  for (const KeyGrammar& key : keys) names.push_back(key.name);
  return names;
}

const ObjectGrammar& FileGrammar() {
  static const ObjectGrammar solver = SolverGrammar();
  static const ObjectGrammar grammar{
      "the file",
      {Object("solver", JsonKind::kObject, solver, "how long, how much at a time, how often")
           .Required(),
       Object("optimizer", JsonKind::kObject, OptimizerGrammar(), "how weights follow gradients")
           .Required(),
       MakeKey("layers", JsonKind::kLayers,
               "the Data layer, then embeddings, dense layers and one loss")
           .Required(),
       Object("cistern", JsonKind::kObject, CisternGrammar(), "what HugeCTR has no word for")
           .Default("{}")}};
  return grammar;
}

}  // namespace cistern
