#include "server/checkpoint/manifest.h"
#include <gtest/gtest.h>
namespace cistern {
TEST(Manifest, ReadsBackWhatWasWritten) {
  v1::Manifest m;
  m.set_cluster("c");
  m.set_commit(1);
  m.set_server_num(1);
  m.set_shard_num(4);
  m.set_worker("{\"a\": \"b\\n\"}");
  auto* t = m.mutable_schema()->add_tables();
  t->set_name("deep");
  t->set_dim(2);
  m.add_tables()->set_name("deep");
  const std::string s = FormatManifest(m);
  auto p = ParseManifest(s);
  ASSERT_TRUE(p.ok()) << p.status();
}
}  // namespace cistern
