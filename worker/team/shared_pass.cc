#include "worker/team/shared_pass.h"

#include <algorithm>
#include <numeric>

#include "worker/pass/batch_builder.h"
#include "worker/team/key_owner.h"
#include "worker/team/message.h"

namespace cistern {
namespace {

// One input of a pass.
class InputExchange {
 public:
  InputExchange(Team& team, const ExchangeOptions& options, size_t input, Pass* pass)
      : team_(team), options_(options), input_(input), pass_(*pass) {}

  absl::Status Run() {
    CISTERN_RETURN_IF_ERROR(FindOwners());
    for (Batch& batch : pass_.batches) batch.exchanged.resize(batch.sparse.size());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> asked, team_.Exchange(AskForRows()));
    return Serve(asked);
  }

 private:
  ExchangedRows& exchanged(Batch& batch) const { return batch.exchanged[input_]; }
  bool counts() const { return options_.count_clicks[input_]; }

  // Asks the owner of every key for its row there.
  absl::Status FindOwners();
  // Puts the keys into the order in which their rows will lie side by side: by owner, then by row
  // there. rows: by key; keys: those asked of each owner.
  void Order(const std::vector<std::vector<Row>>& rows,
             const std::vector<std::vector<uint32_t>>& keys);
  // The messages to the owners: which rows the batches take.
  std::vector<std::string> AskForRows();
  // Rows of the batch become places among those that it takes, which are returned, ascending.
  std::vector<uint32_t> Compact(SparseBatch* sparse);
  void CountClicks(const Batch& batch, const std::vector<uint32_t>& taken,
                   std::vector<std::string>* messages) const;
  // From the messages of the others: what the batches give.
  absl::Status Serve(const std::vector<std::string>& asked);
  absl::Status TakeRows(MessageReader* reader, ExchangedRows* out) const;
  // occurrences: by row that is given.
  static void SumOccurrences(const std::vector<std::vector<uint32_t>>& occurrences,
                             ExchangedRows* out);

  Team& team_;
  const ExchangeOptions& options_;
  const size_t input_;
  Pass& pass_;
  SegmentBuilder segments_;
  std::vector<uint32_t> place_;    // by row of the pass as it was made: its place in that order
  std::vector<uint32_t> owner_;    // by place
  std::vector<Row> there_;         // by place: the row at the owner
  std::vector<uint32_t> compact_;  // by place: among the rows that a batch takes
  std::vector<uint32_t> stamp_;    // by place: the last batch that has it, counted from 1
  uint32_t batch_ = 0;
};

absl::Status InputExchange::FindOwners() {
  const absl::Span<const Key> keys = pass_.keys[input_].keys();
  std::vector<std::vector<uint32_t>> asked(team_.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    asked[OwnerOf(keys[k], team_.size())].push_back(static_cast<uint32_t>(k));
  }
  if (options_.keep_keys[input_]) {
    for (Batch& batch : pass_.batches) {
      SparseBatch& sparse = batch.sparse[input_];
      for (const Row row : sparse.rows) sparse.keys.push_back(keys[row]);
    }
  }
  OwnedKeys& owned = pass_.owned[input_];
  std::vector<std::string> answers(team_.size());
  for (size_t r = 0; r < answers.size(); ++r) PutNumbers<Row>(owned.asked[r], &answers[r]);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> answered, team_.Exchange(answers));
  std::vector<std::vector<Row>> rows(team_.size());
  for (size_t r = 0; r < answered.size(); ++r) {
    CISTERN_RETURN_IF_ERROR(MessageReader(answered[r], r).Take(asked[r].size(), &rows[r]));
  }
  Order(rows, asked);
  pass_.keys[input_] = PassKeys(std::move(owned.keys));
  return absl::OkStatus();
}

void InputExchange::Order(const std::vector<std::vector<Row>>& rows,
                          const std::vector<std::vector<uint32_t>>& keys) {
  size_t count = 0;
  for (const std::vector<uint32_t>& some : keys) count += some.size();
  place_.resize(count);
  for (uint32_t owner = 0; owner < rows.size(); ++owner) {
    std::vector<uint32_t> order(rows[owner].size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return rows[owner][a] < rows[owner][b]; });
    for (const uint32_t k : order) {
      place_[keys[owner][k]] = static_cast<uint32_t>(there_.size());
      there_.push_back(rows[owner][k]);
      owner_.push_back(owner);
    }
  }
  compact_.resize(count);
  stamp_.assign(count, 0);
}

std::vector<std::string> InputExchange::AskForRows() {
  std::vector<std::string> messages(team_.size());
  for (Batch& batch : pass_.batches) {
    SparseBatch& sparse = batch.sparse[input_];
    const std::vector<uint32_t> taken = Compact(&sparse);
    if (options_.segments) segments_.Build(&sparse);
    std::vector<std::vector<Row>> rows(team_.size());
    for (const uint32_t place : taken) rows[owner_[place]].push_back(there_[place]);
    std::vector<uint32_t>& counts = exchanged(batch).taken;
    for (size_t r = 0; r < rows.size(); ++r) {
      counts.push_back(static_cast<uint32_t>(rows[r].size()));
      PutNumbers<uint32_t>({&counts.back(), 1}, &messages[r]);
      PutNumbers<Row>(rows[r], &messages[r]);
    }
    if (this->counts()) CountClicks(batch, taken, &messages);
  }
  return messages;
}

std::vector<uint32_t> InputExchange::Compact(SparseBatch* sparse) {
  ++batch_;
  std::vector<uint32_t> taken;
  for (Row& row : sparse->rows) {
    row = place_[row];
    if (std::exchange(stamp_[row], batch_) != batch_) taken.push_back(row);
  }
  std::sort(taken.begin(), taken.end());
  for (size_t i = 0; i < taken.size(); ++i) compact_[taken[i]] = static_cast<uint32_t>(i);
  for (Row& row : sparse->rows) row = compact_[row];
  return taken;
}

// Of each row that is taken: how often the batch holds it, and each time its slot and its label.
void InputExchange::CountClicks(const Batch& batch, const std::vector<uint32_t>& taken,
                                std::vector<std::string>* messages) const {
  const SparseBatch& sparse = batch.sparse[input_];
  const size_t label_dim = batch.size == 0 ? 1 : batch.label.size() / batch.size;
  for (size_t i = 0; i < taken.size(); ++i) {
    std::string* message = &(*messages)[owner_[taken[i]]];
    const uint32_t begin = sparse.segment_offsets[i], end = sparse.segment_offsets[i + 1];
    std::vector<uint32_t> numbers = {end - begin};
    for (uint32_t k = begin; k < end; ++k) {
      const uint32_t output = sparse.segment_outputs[k];
      const bool click = batch.label[output / sparse.slot_num * label_dim] > 0;
      numbers.push_back((click ? sparse.slot_num : 0) + output % sparse.slot_num);
    }
    PutNumbers<uint32_t>(numbers, message);
  }
}

absl::Status InputExchange::TakeRows(MessageReader* reader, ExchangedRows* out) const {
  CISTERN_ASSIGN_OR_RETURN(const uint32_t count, reader->TakeNumber<uint32_t>());
  CISTERN_RETURN_IF_ERROR(reader->Take(count, &out->served.rows));
  out->given.push_back(count);
  return absl::OkStatus();
}

absl::Status InputExchange::Serve(const std::vector<std::string>& asked) {
  std::vector<MessageReader> readers;
  for (size_t r = 0; r < asked.size(); ++r) readers.emplace_back(asked[r], r);
  for (Batch& batch : pass_.batches) {
    ExchangedRows& out = exchanged(batch);
    std::vector<std::vector<uint32_t>> occurrences;
    for (MessageReader& reader : readers) {
      CISTERN_RETURN_IF_ERROR(TakeRows(&reader, &out));
      while (counts() && occurrences.size() < out.served.rows.size()) {
        CISTERN_ASSIGN_OR_RETURN(const uint32_t count, reader.TakeNumber<uint32_t>());
        CISTERN_RETURN_IF_ERROR(reader.Take(count, &occurrences.emplace_back()));
      }
    }
    out.served.slot_num = 1;
    out.served.offsets.resize(out.served.rows.size() + 1);
    std::iota(out.served.offsets.begin(), out.served.offsets.end(), 0u);
    if (options_.segments) segments_.Build(&out.served);
    if (counts()) SumOccurrences(occurrences, &out);
  }
  return absl::OkStatus();
}

void InputExchange::SumOccurrences(const std::vector<std::vector<uint32_t>>& occurrences,
                                   ExchangedRows* out) {
  const SparseBatch& served = out->served;
  out->occurrence_offsets.push_back(0);
  for (size_t i = 0; i < served.segment_rows.size(); ++i) {
    for (uint32_t k = served.segment_offsets[i]; k < served.segment_offsets[i + 1]; ++k) {
      const std::vector<uint32_t>& some = occurrences[served.segment_outputs[k]];
      out->occurrences.insert(out->occurrences.end(), some.begin(), some.end());
    }
    out->occurrence_offsets.push_back(static_cast<uint32_t>(out->occurrences.size()));
  }
}

}  // namespace

absl::Status ExchangeRows(Team& team, const ExchangeOptions& options, Pass* pass) {
  for (size_t i = 0; i < pass->keys.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(InputExchange(team, options, i, pass).Run());
  }
  pass->owned.clear();
  return absl::OkStatus();
}

}  // namespace cistern
