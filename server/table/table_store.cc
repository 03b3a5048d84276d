#include "server/table/table_store.h"

#include "absl/strings/str_cat.h"
#include "common/value/schema.h"

namespace cistern::server {
namespace {

absl::Status NoTable(const char* kind, TableId id, size_t count) {
  return absl::NotFoundError(
      absl::StrCat("there is no ", kind, " table ", id, " on this server: its schema has ", count));
}

}  // namespace

absl::Status TableStore::Create(const v1::Schema& schema) {
  CISTERN_RETURN_IF_ERROR(CheckSchema(schema));
  const uint64_t hash = SchemaHash(schema);
  if (schema_hash_ != 0) {
    if (hash == schema_hash_) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "this server has tables of another schema: ", SchemaDifference(schema_, schema),
        " (server's -> requested). Use the model that created them, or restart the "
        "servers"));
  }
  std::vector<std::unique_ptr<SparseTable>> sparse;
  for (const v1::TableSpec& spec : schema.tables()) {
    CISTERN_ASSIGN_OR_RETURN(auto table, SparseTable::Create(spec, map_, rank_, tiered_));
    sparse.push_back(std::move(table));
  }
  for (const v1::DenseTableSpec& spec : schema.dense_tables()) {
    dense_.push_back(std::make_unique<DenseTable>(spec, rank_, map_.server_num()));
  }
  sparse_ = std::move(sparse);
  schema_ = schema;
  schema_hash_ = hash;
  return absl::OkStatus();
}

absl::StatusOr<SparseTable*> TableStore::sparse(TableId id) const {
  if (id >= sparse_.size()) return NoTable("sparse", id, sparse_.size());
  return sparse_[id].get();
}

absl::StatusOr<DenseTable*> TableStore::dense(TableId id) const {
  if (id >= dense_.size()) return NoTable("dense", id, dense_.size());
  return dense_[id].get();
}

v1::StepClock TableStore::clock() const {
  absl::MutexLock lock(&clock_mutex_);
  return clock_;
}

void TableStore::set_clock(const v1::StepClock& clock) {
  absl::MutexLock lock(&clock_mutex_);
  clock_ = clock;
}

v1::PassDays TableStore::days() const {
  absl::MutexLock lock(&clock_mutex_);
  return days_;
}

void TableStore::set_days(const v1::PassDays& days) {
  absl::MutexLock lock(&clock_mutex_);
  days_ = days;
}

void TableStore::Clear() {
  set_clock(v1::StepClock());
  set_days(v1::PassDays());
  for (const std::unique_ptr<SparseTable>& table : sparse_) table->Clear();
  for (const std::unique_ptr<DenseTable>& table : dense_) table->Clear();
}

}  // namespace cistern::server
