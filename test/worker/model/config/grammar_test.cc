#include "worker/model/config/grammar.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "worker/model/config/grammar_check.h"
#include "worker/model/layer/layer_list.h"

namespace cistern::model {
namespace {

void CheckTable(const ObjectGrammar& object) {
  std::set<std::string> names;
  for (const KeyGrammar& key : object.keys) {
    EXPECT_TRUE(names.insert(key.name).second) << object.title << "." << key.name << " twice";
    EXPECT_FALSE(key.required && !key.fallback.empty()) << object.title << "." << key.name;
    EXPECT_FALSE(key.meaning.empty()) << object.title << "." << key.name;
    if (key.object != nullptr) CheckTable(*key.object);
  }
}

TEST(Grammar, ListsEveryKeyOnceWithAMeaning) {
  CheckTable(FileGrammar());
  for (const LayerGrammar& layer : LayerGrammars()) CheckTable(layer.object);
}

std::string Configuration() {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Grammar, MatchesTheDocumentation) {
  EXPECT_NE(Configuration().find(GrammarMarkdown(LayerGrammars())), std::string::npos)
      << "docs/configuration.md must end with this text:\n"
      << GrammarMarkdown(LayerGrammars());
}

// HugeCTR's manual describes the types of 2.3.
TEST(Grammar, TheDocumentationSaysWhatEachOtherLayerComputes) {
  const std::set<std::string> of_hugectr = {"Add",
                                            "BatchNorm",
                                            "BinaryCrossEntropyLoss",
                                            "Cast",
                                            "Concat",
                                            "CrossEntropyLoss",
                                            "DotProduct",
                                            "Dropout",
                                            "ELU",
                                            "FmOrder2",
                                            "FusedInnerProduct",
                                            "InnerProduct",
                                            "Interaction",
                                            "MultiCross",
                                            "MultiCrossEntropyLoss",
                                            "Multiply",
                                            "ReLU",
                                            "ReduceSum",
                                            "Reshape",
                                            "Slice"};
  const std::string all = Configuration(), explained = all.substr(0, all.find("## Objects"));
  for (const LayerGrammar& layer : LayerGrammars()) {
    if (layer.role == LayerRole::kData || layer.role == LayerRole::kEmbedding) continue;
    EXPECT_TRUE(of_hugectr.count(layer.type) == 1 ||
                explained.find("\n| " + layer.type + " ") != std::string::npos)
        << layer.type << ": add a row to 'Layers of Cistern' of docs/configuration.md";
  }
}

// The keys of `object` that a resumed run may change.
void AddChangeable(const ObjectGrammar& object, const std::string& path,
                   std::set<std::string>* names) {
  for (const KeyGrammar& key : object.keys) {
    if (key.may_change) names->insert(path + key.name);
    if (key.object == nullptr) continue;
    AddChangeable(*key.object,
                  path + key.name + (key.kind == JsonKind::kNamedObjects ? ".NAME." : "."), names);
  }
}

// What positions of 0.1.0 left out, and what later keys that change no row have added.
TEST(Grammar, LetsResumedRunsChangeWhatTrainsNothing) {
  std::set<std::string> names;
  AddChangeable(FileGrammar(), "", &names);
  for (const LayerGrammar& layer : LayerGrammars()) {
    AddChangeable(layer.object, layer.type + ".", &names);
  }
  const std::string stream = "cistern.stream.", ctr = "cistern.embeddings.NAME.";
  EXPECT_EQ(names, (std::set<std::string>{"solver.display",
                                          "solver.max_iter",
                                          "solver.num_epochs",
                                          "solver.snapshot",
                                          "solver.snapshot_prefix",
                                          "solver.dense_model_file",
                                          "solver.dense model_file",
                                          "solver.dense_opt_states_file",
                                          "solver.sparse_model_file",
                                          "solver.sparse_opt_states_file",
                                          "solver.batchsize_eval",
                                          "solver.eval_interval",
                                          "solver.eval_batches",
                                          "solver.eval_metrics",
                                          "solver.max_eval_batches",
                                          "solver.gpu",
                                          "solver.algorithm_search",
                                          "solver.cuda_graph",
                                          "Data.eval_source",
                                          "Data.eval_num_samples",
                                          "Data.cache_eval_data",
                                          "Data.keyset",
                                          "Data.sparse.max_feature_num_per_sample",
                                          "Data.sparse.max_nnz",
                                          "cistern.gauc_slot.input",
                                          "cistern.gauc_slot.slot",
                                          "cistern.patience",
                                          "cistern.keep_best",
                                          "cistern.pass_memory_mb",
                                          "cistern.device_memory_mb",
                                          "cistern.snapshot_form",
                                          "cistern.commit_every",
                                          "cistern.on_bad_data",
                                          stream + "seconds",
                                          stream + "samples",
                                          stream + "recipe",
                                          stream + "complete",
                                          stream + "properties",
                                          stream + "on_lost",
                                          stream + "age_seconds",
                                          stream + "score",
                                          stream + "score_samples",
                                          stream + "until",
                                          ctr + "base_threshold",
                                          ctr + "delta_threshold",
                                          ctr + "delta_keep_days",
                                          ctr + "show_click_decay_rate",
                                          ctr + "delete_threshold",
                                          ctr + "delete_after_unseen_days"}));
}

TEST(Grammar, FindsAValueByItsPath) {
  for (const char* path :
       {"solver.display", "layers[0].eval_source", "layers[0].sparse[12].max_nnz",
        "cistern.stream.until", "cistern.embeddings.user.v2.delete_threshold"}) {
    EXPECT_TRUE(MayChangeOnResume(path, LayerGrammars())) << path;
  }
  for (const char* path :
       {"", "solver", "solver.seed", "solver.displays", "solver.display.x", "layers", "layers[0]",
        "layers[0", "layers[0].source", "layers[0].sparse[1].slot_num", "layers[3].fc_param",
        "cistern.stream.source", "cistern.embeddings.x", "cistern.embeddings.display",
        "cistern.embeddings.x.initializer.range", "max_iter"}) {
    EXPECT_FALSE(MayChangeOnResume(path, LayerGrammars())) << path;
  }
}

}  // namespace
}  // namespace cistern::model
