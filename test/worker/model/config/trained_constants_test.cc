#include "worker/model/config/trained_constants.h"

#include <gtest/gtest.h>

namespace cistern::model {
namespace {

v1::TableSpec Table() {
  v1::TableSpec table;
  table.set_name("deep");
  table.set_dim(8);
  table.mutable_rule()->set_kind(v1::UpdateRule::ADAM);
  table.mutable_rule()->set_beta1(0.9f);
  table.set_seed(1);
  return table;
}

// What a model file with the table `file` becomes beside trained rows of `trained`.
v1::TableSpec Taken(const v1::TableSpec& file, const v1::TableSpec& trained) {
  ModelConfig config;
  config.embeddings.emplace_back().spec = file;
  v1::Schema schema;
  *schema.add_tables() = trained;
  TakeTrainedConstants(schema, &config);
  return config.embeddings[0].spec;
}

TEST(TrainedConstants, ReplaceWhatChangesNoPrediction) {
  v1::TableSpec file = Table();
  file.mutable_rule()->set_beta1(0.5f);
  file.set_seed(9);
  file.mutable_ctr()->set_delete_threshold(0.1f);
  file.mutable_initializer()->set_range(3);
  EXPECT_EQ(Taken(file, Table()).SerializeAsString(), Table().SerializeAsString());
}

TEST(TrainedConstants, LeaveTablesThatPredictOtherwise) {
  v1::TableSpec changed[5] = {Table(), Table(), Table(), Table(), Table()};
  changed[0].set_dim(16);
  changed[1].set_name("wide");
  changed[2].mutable_rule()->set_kind(v1::UpdateRule::SGD);
  changed[3].set_accessor(v1::TableSpec::CTR);
  changed[4].mutable_rule()->set_missed(v1::UpdateRule::GLOBAL);
  for (v1::TableSpec& file : changed) {
    file.set_seed(9);
    EXPECT_EQ(Taken(file, Table()).SerializeAsString(), file.SerializeAsString());
  }
}

}  // namespace
}  // namespace cistern::model
