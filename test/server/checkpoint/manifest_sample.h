// A manifest with a value in every field, for the tests that write and read it.
#pragma once

#include <string>

#include "server/checkpoint/manifest.h"
#include "test/server/checkpoint/row_file_sample.h"

namespace cistern::server {

inline v1::RowFile SampleFile(const std::string& name, bool base, uint32_t server,
                              uint64_t commit) {
  v1::RowFile file;
  file.set_name(name);
  file.set_base(base);
  file.set_server(server);
  file.set_server_num(2);
  file.set_commit(commit);
  file.set_epoch(commit == 7 ? 3 : 1);
  file.set_rows(base ? 100 : 21);
  file.set_bytes(4096);
  file.set_root(0xfedcba9876543210 + server);
  return file;
}

inline void AddTable(google::protobuf::RepeatedPtrField<v1::TableState>* tables,
                     const std::string& name, uint64_t rows, uint64_t digest) {
  v1::TableState* table = tables->Add();
  table->set_name(name);
  table->set_rows(rows);
  table->set_digest(digest);
}

inline v1::Manifest SampleManifest() {
  v1::Manifest manifest;
  manifest.set_format(kManifestFormat);
  manifest.set_cluster("ads");
  manifest.set_commit(7);
  manifest.set_previous(0x0123456789abcdef);
  manifest.set_pass(9);
  manifest.set_epoch(3);
  manifest.set_server_num(2);
  manifest.set_shard_num(4);
  manifest.set_created("2026-11-21T22:24:30Z");
  manifest.set_worker(R"({"iteration": 12, "file": "a \"b\"\\c"})");
  AddTable(manifest.mutable_tables(), "deep", 17, 18446744073709551615u);
  AddTable(manifest.mutable_tables(), "ctr", 0, 0);
  AddTable(manifest.mutable_dense_tables(), "dense", 9, 1);
  *manifest.add_files() = SampleFile("base-3-1-0", true, 0, 3);
  *manifest.add_files() = SampleFile("delta-7-3-0", false, 0, 7);
  *manifest.add_files() = SampleFile("base-7-3-1", true, 1, 7);
  *manifest.mutable_schema() = SampleSchema();
  return manifest;
}

}  // namespace cistern::server
