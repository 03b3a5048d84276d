// The keys of the optimizer object, at top level and inside an embedding layer.
#include "worker/config/grammar_keys.h"

namespace cistern::grammar {

// Keys that every hparam object of an optimizer may hold.
Keys ScheduleKeys() {
  const std::string inherited = "; in an embedding: as in the top-level optimizer";
  return {Count("warmup_steps", "steps that the rate takes to grow to learning_rate")
              .AtLeast(1)
              .Otherwise("1" + inherited)
              .AtMost(kAnySize),
          Count("decay_start", "last step before the rate decays; 0: no decay")
              .Otherwise("0" + inherited)
              .AtMost(kAnySize),
          Count("decay_steps", "steps that the decay takes")
              .AtLeast(1)
              .Otherwise("1" + inherited)
              .AtMost(kAnySize),
          Number("decay_power", "exponent of the polynomial decay")
              .AtLeast(1)
              .Otherwise("2" + inherited),
          Number("end_lr", "rate below which the decay does not go").Otherwise("0" + inherited)};
}

static KeyGrammar LearningRate() {
  return Number("learning_rate", "rate after the warm-up").Required();
}
Keys AdamConstantKeys() {
  return {
      Number("beta1", "decay of the mean of gradients (Adam)").Default("0.9").Below(1),
      Number("beta2", "decay of the mean of squared gradients (Adam)").Default("0.999").Below(1),
      Number("epsilon", "added to the root (Adam, AdaGrad)").Default("1e-7").Above(0)};
}

static const ObjectGrammar& AdamGrammar() {
  static const ObjectGrammar grammar{"adam_hparam",
                                     Keys{LearningRate()} + AdamConstantKeys() + ScheduleKeys()};
  return grammar;
}
static const ObjectGrammar& SgdGrammar() {
  static const ObjectGrammar grammar{
      "sgd_hparam",
      Keys{LearningRate(),
           Bool("atomic_update", "HugeCTR adds without an order; sums here always have one")
               .Default("false")} +
          ScheduleKeys()};
  return grammar;
}

const ObjectGrammar& OptimizerGrammar() {
  static const ObjectGrammar grammar{
      "optimizer",
      {Word("type", {"Adam", "SGD", "MomentumSGD", "Nesterov"},
            "rule of the dense weights and, at top level, default of the embeddings; MomentumSGD "
            "and "
            "Nesterov are refused in this release")
           .Required(),
       Word("update_type", {"Local", "Global", "LazyGlobal"},
            "which rows of an embedding a step updates; every type is treated as Local: those of "
            "the "
            "batch")
           .Default("\"Local\""),
       Bool("global_update", "HugeCTR's older word for update_type Global").Default("false"),
       Object("adam_hparam", JsonKind::kObject, AdamGrammar(), "constants of Adam")
           .Otherwise("required by type Adam"),
       Object("sgd_hparam", JsonKind::kObject, SgdGrammar(), "constants of SGD")
           .Otherwise("required by type SGD"),
       Anything("momentum_sgd_hparam", "ignored: it belongs to another type of optimizer"),
       Anything("nesterov_hparam", "ignored: it belongs to another type of optimizer"),
       Anything("learning_rate", "ignored: the rate is the one in the hparam object")}};
  return grammar;
}

}  // namespace cistern::grammar
