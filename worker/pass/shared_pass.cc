#include "worker/pass/shared_pass.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "worker/data/source/batch_builder.h"
#include "worker/group/message.h"
#include "worker/pass/key_owner.h"

namespace cistern {
namespace {

// One input of a pass.
class InputExchange {
 public:
  InputExchange(group::ProcessGroup& group, const ExchangeOptions& options, size_t input,
                data::Pass* pass)
      : group_(group), options_(options), input_(input), pass_(*pass) {}

  absl::Status Run() {
    // Clicks are counted from the segments, which a GPU makes only later.
    CISTERN_CHECK(!is_collected() || !counts());
    CISTERN_RETURN_IF_ERROR(FindOwners());
    for (data::HostBatch& batch : pass_.batches) batch.exchanged.resize(batch.sparse.size());
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> asked, group_.Exchange(AskForRows()));
    return Serve(asked);
  }

 private:
  data::HostExchange& exchanged(data::HostBatch& batch) const { return batch.exchanged[input_]; }
  bool counts() const { return options_.count_clicks[input_]; }

  // Whether a GPU has collected the keys. Then place k is that of the k-th key, by mixed key.
  bool is_collected() const { return !pass_.collected.empty(); }

  // Asks the owner of every key for its row there, and assigns each key a place, by owner.
  absl::Status FindOwners();
  // By owner, in order of arrival there: places of collected keys, or rows of the pass as cut.
  std::vector<std::vector<uint32_t>> KeysByOwner() const;
  // Keeps the keys of batches where the options ask for them, and drops them elsewhere.
  void KeepKeys();
  // For keys that have places. rows: the answers, by owner and key; places: the requests, by owner.
  void TakeAnswers(const std::vector<std::vector<Row>>& rows,
                   const std::vector<std::vector<uint32_t>>& places);
  // For keys without places: sorts them by owner, then by row there. keys: the requests, by owner.
  void Order(const std::vector<std::vector<Row>>& rows,
             const std::vector<std::vector<uint32_t>>& keys);
  // The messages to the owners: the rows that the batches take.
  std::vector<std::string> AskForRows();
  // Returns the places that a batch takes, ascending; renumbers its rows as indices into them.
  std::vector<uint32_t> PlacesTaken(data::HostSparseBatch* sparse);
  std::vector<uint32_t> Compact(data::HostSparseBatch* sparse);
  void MakeSegments(data::HostSparseBatch* sparse);
  // Appends the counts of the rows [begin, end) of a batch.
  void CountClicks(const data::HostBatch& batch, size_t begin, size_t end,
                   std::string* message) const;
  // Reads which rows of the batches the other workers request.
  absl::Status Serve(const std::vector<std::string>& asked);
  absl::Status TakeRows(group::MessageReader* reader, data::HostExchange* out) const;
  // occurrences: those of a row, in the format of CountClicks.
  absl::Status CheckOccurrences(const data::HostBatch& batch,
                                const std::vector<uint32_t>& occurrences,
                                const group::MessageReader& reader) const;
  // occurrences: by given row.
  static void SumOccurrences(const std::vector<std::vector<uint32_t>>& occurrences,
                             data::HostExchange* out);

  group::ProcessGroup& group_;
  const ExchangeOptions& options_;
  const size_t input_;
  data::Pass& pass_;
  data::SegmentBuilder segments_;
  std::vector<uint32_t> place_ends_;  // by owner: one past the last place of its keys
  std::vector<Row> there_;            // by place: the row at the owner
  // For keys that the host has collected.
  std::vector<uint32_t> place_;    // by row of the pass as cut
  std::vector<uint32_t> compact_;  // by place: index among the rows that a batch takes
  std::vector<uint32_t> stamp_;    // by place: the last batch that takes it, counted from 1
  uint32_t batch_ = 0;
};

std::vector<std::vector<uint32_t>> InputExchange::KeysByOwner() const {
  std::vector<std::vector<uint32_t>> asked(group_.size());
  const auto ask = [&](absl::Span<const Key> keys, const auto& number) {
    for (size_t k = 0; k < keys.size(); ++k) {
      asked[OwnerOf(keys[k], group_.size())].push_back(number(k));
    }
  };
  if (is_collected()) {
    const data::CollectedKeys& own = pass_.collected[input_];
    ask(own.keys, [&own](size_t k) { return own.places[k]; });
  } else {
    ask(pass_.keys[input_].keys(), [](size_t k) { return static_cast<uint32_t>(k); });
  }
  return asked;
}

void InputExchange::KeepKeys() {
  const bool keep = options_.keep_keys[input_];
  if (keep == is_collected()) return;
  const absl::Span<const Key> keys = pass_.keys[input_].keys();
  for (data::HostBatch& batch : pass_.batches) {
    data::HostSparseBatch& sparse = batch.sparse[input_];
    sparse.keys = {};
    if (!keep) continue;
    for (const Row row : sparse.rows) sparse.keys.push_back(keys[row]);
  }
}

absl::Status InputExchange::FindOwners() {
  const std::vector<std::vector<uint32_t>> asked = KeysByOwner();
  KeepKeys();
  if (is_collected()) pass_.collected[input_] = {};
  data::OwnedKeys& owned = pass_.owned[input_];
  std::vector<std::string> answers(group_.size());
  for (size_t r = 0; r < answers.size(); ++r) group::PutNumbers<Row>(owned.asked[r], &answers[r]);
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> answered, group_.Exchange(answers));
  std::vector<std::vector<Row>> rows(group_.size());
  uint32_t end = 0;
  for (size_t r = 0; r < answered.size(); ++r) {
    CISTERN_RETURN_IF_ERROR(group::MessageReader(answered[r], r).Take(asked[r].size(), &rows[r]));
    place_ends_.push_back(end += static_cast<uint32_t>(asked[r].size()));
  }
  there_.resize(end);
  if (is_collected()) {
    TakeAnswers(rows, asked);
  } else {
    Order(rows, asked);
  }
  pass_.keys[input_] = data::PassKeys(std::move(owned.keys));
  return absl::OkStatus();
}

void InputExchange::TakeAnswers(const std::vector<std::vector<Row>>& rows,
                                const std::vector<std::vector<uint32_t>>& places) {
  for (size_t owner = 0; owner < rows.size(); ++owner) {
    for (size_t k = 0; k < rows[owner].size(); ++k) there_[places[owner][k]] = rows[owner][k];
  }
}

void InputExchange::Order(const std::vector<std::vector<Row>>& rows,
                          const std::vector<std::vector<uint32_t>>& keys) {
  place_.resize(there_.size());
  uint32_t place = 0;
  for (uint32_t owner = 0; owner < rows.size(); ++owner) {
    std::vector<uint32_t> order(rows[owner].size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return rows[owner][a] < rows[owner][b]; });
    for (const uint32_t k : order) {
      there_[place] = rows[owner][k];
      place_[keys[owner][k]] = place++;
    }
  }
  compact_.resize(there_.size());
  stamp_.assign(there_.size(), 0);
}

std::vector<std::string> InputExchange::AskForRows() {
  std::vector<std::string> messages(group_.size());
  std::vector<Row> rows;
  for (data::HostBatch& batch : pass_.batches) {
    data::HostSparseBatch& sparse = batch.sparse[input_];
    const std::vector<uint32_t> taken = PlacesTaken(&sparse);
    if (options_.segments) MakeSegments(&sparse);
    size_t begin = 0;
    for (size_t r = 0; r < messages.size(); ++r) {
      size_t end = begin;
      rows.clear();
      for (; end < taken.size() && taken[end] < place_ends_[r]; ++end) {
        rows.push_back(there_[taken[end]]);
      }
      const auto count = static_cast<uint32_t>(rows.size());
      exchanged(batch).taken.push_back(count);
      group::PutNumbers<uint32_t>({&count, 1}, &messages[r]);
      group::PutNumbers<Row>(rows, &messages[r]);
      if (counts()) CountClicks(batch, begin, end, &messages[r]);
      begin = end;
    }
  }
  return messages;
}

std::vector<uint32_t> InputExchange::PlacesTaken(data::HostSparseBatch* sparse) {
  return is_collected() ? std::exchange(sparse->segment_rows, {}) : Compact(sparse);
}

std::vector<uint32_t> InputExchange::Compact(data::HostSparseBatch* sparse) {
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

void InputExchange::MakeSegments(data::HostSparseBatch* sparse) {
  if (is_collected()) {
    sparse->segments_there = true;
  } else {
    segments_.Build(sparse);
  }
}

// Appends for each row: its number of occurrences in the batch, then slot and label of each.
void InputExchange::CountClicks(const data::HostBatch& batch, size_t begin, size_t end,
                                std::string* message) const {
  const data::HostSparseBatch& sparse = batch.sparse[input_];
  const size_t label_dim = batch.size == 0 ? 1 : batch.label.size() / batch.size;
  for (size_t i = begin; i < end; ++i) {
    const uint32_t first = sparse.segment_offsets[i], last = sparse.segment_offsets[i + 1];
    std::vector<uint32_t> numbers = {last - first};
    for (uint32_t k = first; k < last; ++k) {
      const uint32_t output = sparse.segment_outputs[k];
      const bool click = batch.label[output / sparse.slot_num * label_dim] > 0;
      numbers.push_back((click ? sparse.slot_num : 0) + output % sparse.slot_num);
    }
    group::PutNumbers<uint32_t>(numbers, message);
  }
}

absl::Status InputExchange::TakeRows(group::MessageReader* reader, data::HostExchange* out) const {
  CISTERN_ASSIGN_OR_RETURN(const uint32_t count, reader->TakeNumber<uint32_t>());
  std::vector<Row>& rows = out->served.rows;
  CISTERN_RETURN_IF_ERROR(reader->Take(count, &rows));
  const size_t held = pass_.keys[input_].size();
  for (size_t i = rows.size() - count; i < rows.size(); ++i) {
    if (rows[i] >= held) return reader->Wrong(absl::StrCat("asks for row ", rows[i], " of ", held));
  }
  out->given.push_back(count);
  return absl::OkStatus();
}

absl::Status InputExchange::Serve(const std::vector<std::string>& asked) {
  std::vector<group::MessageReader> readers;
  for (size_t r = 0; r < asked.size(); ++r) readers.emplace_back(asked[r], r);
  for (data::HostBatch& batch : pass_.batches) {
    data::HostExchange& out = exchanged(batch);
    std::vector<std::vector<uint32_t>> occurrences;
    for (group::MessageReader& reader : readers) {
      CISTERN_RETURN_IF_ERROR(TakeRows(&reader, &out));
      while (counts() && occurrences.size() < out.served.rows.size()) {
        CISTERN_ASSIGN_OR_RETURN(const uint32_t count, reader.TakeNumber<uint32_t>());
        CISTERN_RETURN_IF_ERROR(reader.Take(count, &occurrences.emplace_back()));
        CISTERN_RETURN_IF_ERROR(CheckOccurrences(batch, occurrences.back(), reader));
      }
    }
    out.served.slot_num = 1;
    out.served.offsets.resize(out.served.rows.size() + 1);
    std::iota(out.served.offsets.begin(), out.served.offsets.end(), 0u);
    if (options_.segments) MakeSegments(&out.served);
    if (counts()) SumOccurrences(occurrences, &out);
  }
  for (const group::MessageReader& reader : readers) {
    if (!reader.at_end()) return reader.Wrong("asks for rows of more batches than exist");
  }
  return absl::OkStatus();
}

absl::Status InputExchange::CheckOccurrences(const data::HostBatch& batch,
                                             const std::vector<uint32_t>& occurrences,
                                             const group::MessageReader& reader) const {
  if (occurrences.empty()) return reader.Wrong("asks for a row that its batch does not hold");
  const size_t end = size_t{2} * batch.sparse[input_].slot_num;
  for (const uint32_t occurrence : occurrences) {
    if (occurrence >= end) {
      return reader.Wrong(absl::StrCat("counts occurrence ", occurrence, " of ", end));
    }
  }
  return absl::OkStatus();
}

void InputExchange::SumOccurrences(const std::vector<std::vector<uint32_t>>& occurrences,
                                   data::HostExchange* out) {
  const data::HostSparseBatch& served = out->served;
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

absl::Status ExchangeRows(group::ProcessGroup& group, const ExchangeOptions& options,
                          data::Pass* pass) {
  for (size_t i = 0; i < pass->keys.size(); ++i) {
    CISTERN_RETURN_IF_ERROR(InputExchange(group, options, i, pass).Run());
  }
  pass->owned.clear();
  pass->collected.clear();
  return absl::OkStatus();
}

}  // namespace cistern
