#include "server/table/row_map.h"

#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/prefetch.h"
#include "common/value/value_layout.h"

namespace cistern::server {
namespace {

// The number of keys between a prefetch and its use: enough to cover a memory access. 8 to 32
// measure the same.
constexpr size_t kAhead = 16;

// A scan's cursor holds the bucket in its high bits and the place in the bucket in the low
// kPlaceBits.
constexpr int kPlaceBits = 48;

}  // namespace

void RowMap::Read(absl::Span<const Key> keys, bool absent_is_zero, float* out,
                  uint8_t* has_embedx) const {
  const size_t stride = layout_->full_floats();
  StageRing<uint64_t, kAhead> hashes;
  StageRing<Slot, kAhead> slots;
  const auto find = [&](size_t i) {
    hashes[i] = MixKey(keys[i]);
    index_.Prefetch(hashes[i]);
  };
  const auto fetch = [&](size_t i) {
    slots[i] = index_.FindTag(hashes[i]);
    if (!slots[i].empty()) PrefetchRecord(slots[i]);
  };
  const auto use = [&](size_t i) {
    Slot slot = slots[i];
    if (!slot.empty() && slot.key() != keys[i]) {
      const Slot* found = index_.Find(hashes[i], keys[i]);
      slot = found == nullptr ? Slot() : *found;
    }
    float* value = out + i * stride;
    if (!slot.empty()) {
      CopyValue(slot.record(), slot.has_embedx(), value);
      has_embedx[i] = slot.has_embedx();
    } else if (absent_is_zero) {
      std::memset(value, 0, stride * sizeof(float));
      has_embedx[i] = kAbsent;
    } else {
      has_embedx[i] = layout_->Initialize(keys[i], value);
    }
  };
  RunStages<kAhead>(keys.size(), find, fetch, use);
}

template <typename Use>
void RowMap::Visit(absl::Span<const Key> keys, Use use) const {
  StageRing<uint64_t, kAhead> hashes;
  const auto find = [&](size_t i) {
    hashes[i] = MixKey(keys[i]);
    index_.Prefetch(hashes[i]);
  };
  const auto fetch = [&](size_t i) {
    const Slot slot = index_.FindTag(hashes[i]);
    if (!slot.empty()) PrefetchRecord(slot);
  };
  RunStages<kAhead>(keys.size(), find, fetch, [&](size_t i) { use(i, hashes[i]); });
}

void RowMap::Write(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx) {
  const size_t stride = layout_->full_floats();
  // Searches again, in cache lines that have arrived by now: the writes in between may have moved
  // the slot.
  Visit(keys, [&](size_t i, uint64_t hash) {
    Upsert(hash, keys[i], values + i * stride, has_embedx[i] != 0);
  });
}

void RowMap::Write(Key key, const float* value, bool has_embedx) {
  Upsert(MixKey(key), key, value, has_embedx);
}

size_t RowMap::Create(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx) {
  const size_t stride = layout_->full_floats();
  StageRing<uint64_t, kAhead> hashes;
  size_t created = 0;
  const auto find = [&](size_t i) {
    hashes[i] = MixKey(keys[i]);
    index_.Prefetch(hashes[i]);
  };
  const auto use = [&](size_t i) {
    if (created != i || index_.Find(hashes[i], keys[i]) != nullptr) return;
    const bool with_embedx = has_embedx[i] != 0 || !layout_->embedx_is_optional();
    index_.Insert(hashes[i], NewRecord(keys[i], values + i * stride, with_embedx), with_embedx);
    embedx_rows_ += with_embedx;
    ++created;
  };
  RunStages<kAhead>(
      keys.size(), find, [](size_t) {}, use);
  return created;
}

void RowMap::Place(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx) {
  const size_t stride = layout_->full_floats();
  placed_.reserve(placed_.size() + keys.size());
  Visit(keys, [&](size_t i, uint64_t hash) {
    if (index_.Find(hash, keys[i]) != nullptr) return;
    const bool with_embedx = has_embedx[i] != 0 || !layout_->embedx_is_optional();
    placed_.push_back(Slot(NewRecord(keys[i], values + i * stride, with_embedx), with_embedx));
  });
}

void RowMap::DropPlaced() {
  for (; next_placed_ < placed_.size(); ++next_placed_) {
    const Slot slot = placed_[next_placed_];
    arena_.Release(slot.record(), RecordBytes(slot.has_embedx()));
  }
  std::vector<Slot>().swap(placed_);
  next_placed_ = 0;
}

void RowMap::Expect(size_t rows) {
  arena_.Expect(rows * RecordBytes(false));
  if (this->rows() == 0 && placed_.empty()) index_.Expect(rows);
}

std::vector<RowMap::Stored> RowMap::All() const {
  std::vector<Stored> rows;
  rows.reserve(this->rows());
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end; ++place) {
      if (place + kAhead < end) PrefetchRecord(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (!slot.empty()) rows.push_back(StoredIn(slot));
    }
  }
  return rows;
}

std::vector<Key> RowMap::Keys() const {
  std::vector<Key> keys;
  keys.reserve(rows());
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end; ++place) {
      if (place + kAhead < end) __builtin_prefetch(index_.slot(b, place + kAhead).record());
      const Slot slot = index_.slot(b, place);
      if (!slot.empty()) keys.push_back(slot.key());
    }
  }
  return keys;
}

std::vector<RowMap::Stored> RowMap::Locate(absl::Span<const Key> keys) const {
  std::vector<Stored> rows(keys.size());
  Visit(keys, [&](size_t i, uint64_t hash) {
    const Slot* slot = index_.Find(hash, keys[i]);
    if (slot != nullptr) rows[i] = StoredIn(*slot);
    rows[i].key = keys[i];
  });
  return rows;
}

bool RowMap::Remove(Key key) {
  const uint64_t hash = MixKey(key);
  const Slot* slot = index_.Find(hash, key);
  if (slot == nullptr) return false;
  const Slot removed = *slot;  // a copy: Erase reuses the place
  index_.Erase(hash, key);
  Free(removed);
  return true;
}

void RowMap::Sweep(const std::function<RowFate(Key, float*, bool)>& visit) {
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end;) {
      if (place + kAhead < end) PrefetchRecord(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (!slot.empty()) {
        float* value = reinterpret_cast<float*>(slot.record() + sizeof(Key));
        if (visit(slot.key(), value, slot.has_embedx()) == RowFate::kRemove) {
          index_.EraseAt(b, place);  // the next row to visit may be here now
          Free(slot);
          continue;
        }
      }
      ++place;
    }
  }
}

bool RowMap::Find(Key key, float* out, bool* has_embedx) const {
  const Slot* slot = index_.Find(MixKey(key), key);
  if (slot == nullptr) return false;
  CopyValue(slot->record(), slot->has_embedx(), out);
  *has_embedx = slot->has_embedx();
  return true;
}

uint64_t RowMap::Scan(uint64_t cursor, size_t limit,
                      const std::function<void(Key, const float*, bool)>& visit) const {
  CISTERN_CHECK(limit > 0);
  std::vector<float> short_value(layout_->full_floats());
  size_t place = cursor & ((uint64_t{1} << kPlaceBits) - 1);
  for (size_t b = cursor >> kPlaceBits; b < BucketIndex::kBucketNum; ++b, place = 0) {
    const size_t end = index_.slot_num(b);
    for (; place < end; ++place) {
      if (limit == 0) return uint64_t{b} << kPlaceBits | place;
      if (place + kAhead < end) PrefetchRecord(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (slot.empty()) continue;
      --limit;
      const float* value = reinterpret_cast<const float*>(slot.record() + sizeof(Key));
      if (!slot.has_embedx()) {
        CopyValue(slot.record(), false, short_value.data());
        value = short_value.data();
      }
      visit(slot.key(), value, slot.has_embedx());
    }
  }
  return 0;
}

// --- scored maps

void RowMap::CountScores(ScoreHistogram* scores) const {
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end; ++place) {
      if (place + kAhead < end) PrefetchScore(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (!slot.empty()) scores->Add(ScoreIn(slot), RowBytes(slot.has_embedx()));
    }
  }
}

void RowMap::MoveScores(absl::Span<const Key> keys, float now, ScoreHistogram* scores,
                        std::vector<uint32_t>* absent) const {
  Visit(keys, [&](size_t i, uint64_t hash) {
    const Slot* slot = index_.Find(hash, keys[i]);
    if (slot == nullptr) {
      absent->push_back(static_cast<uint32_t>(i));
      return;
    }
    const float score = ScoreIn(*slot);
    const size_t bytes = RowBytes(slot->has_embedx());
    scores->Remove(score, bytes);
    scores->Add(AddPass(score, now), bytes);
  });
}

void RowMap::Update(absl::Span<const Key> keys, const float* values, const uint8_t* has_embedx,
                    std::vector<uint32_t>* absent) {
  const size_t stride = layout_->full_floats();
  Visit(keys, [&](size_t i, uint64_t hash) {
    if (index_.Find(hash, keys[i]) == nullptr) {
      absent->push_back(static_cast<uint32_t>(i));
    } else {
      Upsert(hash, keys[i], values + i * stride, has_embedx[i] != 0);
    }
  });
}

void RowMap::Add(Key key, const float* value, bool has_embedx, float score) {
  has_embedx |= !layout_->embedx_is_optional();
  const char* const record = NewRecord(key, value, has_embedx);
  ScoreIn(Slot(record, has_embedx)) = score;
  index_.Insert(MixKey(key), record, has_embedx);
  embedx_rows_ += has_embedx;
}

size_t RowMap::Evict(const ScoreCut& cut) {
  size_t evicted = 0;
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end;) {
      if (place + kAhead < end) PrefetchScore(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (slot.empty() || cut.Keeps(ScoreIn(slot), slot.key())) {
        ++place;
        continue;
      }
      index_.EraseAt(b, place);  // the next row to visit may be here now
      Free(slot);
      ++evicted;
    }
  }
  return evicted;
}

std::unique_ptr<RowMap> RowMap::Packed() const {
  CISTERN_CHECK(placed_.empty());
  auto packed = std::make_unique<RowMap>(layout_, score_bytes_ > 0);
  packed->now_ = now_;
  packed->embedx_rows_ = embedx_rows_;
  packed->index_.Expect(rows());
  for (size_t b = 0; b < BucketIndex::kBucketNum; ++b) {
    const size_t end = index_.slot_num(b);
    for (size_t place = 0; place < end; ++place) {
      if (place + kAhead < end) PrefetchRecord(index_.slot(b, place + kAhead));
      const Slot slot = index_.slot(b, place);
      if (slot.empty()) continue;
      const size_t bytes = RecordBytes(slot.has_embedx());
      char* const record = packed->arena_.Allocate(bytes);
      std::memcpy(record, slot.record(), bytes);
      packed->index_.Insert(MixKey(slot.key()), record, slot.has_embedx());
    }
  }
  return packed;
}

void RowMap::PrefetchScore(Slot slot) const {
  if (slot.empty()) return;
  __builtin_prefetch(slot.record());
  __builtin_prefetch(&ScoreIn(slot));
}

void RowMap::PrefetchRecord(Slot slot) const {
  const char* record = slot.record();
  const size_t bytes = RecordBytes(slot.has_embedx());
  PrefetchRow<0>(record, bytes);
  __builtin_prefetch(record + bytes - 1);
}

void RowMap::CopyValue(const char* record, bool has_embedx, float* out) const {
  const size_t cells = layout_->floats(has_embedx);
  std::memcpy(out, record + sizeof(Key), cells * sizeof(float));
  if (!has_embedx) std::memset(out + cells, 0, (layout_->full_floats() - cells) * sizeof(float));
}

RowMap::Stored RowMap::StoredIn(Slot slot) {
  return {slot.key(), reinterpret_cast<const float*>(slot.record() + sizeof(Key)),
          slot.has_embedx()};
}

void RowMap::WriteRecord(char* record, Key key, const float* value, bool has_embedx) const {
  std::memcpy(record, &key, sizeof(key));
  std::memcpy(record + sizeof(key), value, layout_->floats(has_embedx) * sizeof(float));
}

void RowMap::Free(Slot slot) {
  arena_.Release(slot.record(), RecordBytes(slot.has_embedx()));
  embedx_rows_ -= slot.has_embedx();
}

char* RowMap::NewRecord(Key key, const float* value, bool has_embedx) {
  char* record = arena_.Allocate(RecordBytes(has_embedx));
  WriteRecord(record, key, value, has_embedx);
  if (score_bytes_ != 0) ScoreIn(Slot(record, has_embedx)) = now_;
  return record;
}

char* RowMap::TakePlaced(Key key, bool has_embedx) {
  if (next_placed_ == placed_.size()) return nullptr;
  if (next_placed_ + kAhead < placed_.size()) {
    __builtin_prefetch(placed_[next_placed_ + kAhead].record());
  }
  const Slot slot = placed_[next_placed_];
  if (slot.key() != key || slot.has_embedx() != has_embedx) return nullptr;
  ++next_placed_;
  return slot.record();
}

void RowMap::Upsert(uint64_t hash, Key key, const float* value, bool has_embedx) {
  has_embedx |= !layout_->embedx_is_optional();
  const Slot* slot = index_.Find(hash, key);
  if (slot != nullptr && slot->has_embedx() == has_embedx) {
    WriteRecord(slot->record(), key, value, has_embedx);
    if (score_bytes_ != 0) ScoreIn(*slot) = AddPass(ScoreIn(*slot), now_);
    return;
  }
  if (slot == nullptr) {
    const char* const placed = TakePlaced(key, has_embedx);
    index_.Insert(hash, placed != nullptr ? placed : NewRecord(key, value, has_embedx), has_embedx);
    embedx_rows_ += has_embedx;
    return;
  }
  const Slot old = *slot;
  const char* const record = NewRecord(key, value, has_embedx);
  if (score_bytes_ != 0) ScoreIn(Slot(record, has_embedx)) = AddPass(ScoreIn(old), now_);
  index_.Replace(hash, key, record, has_embedx);
  embedx_rows_ += has_embedx;
  Free(old);
}

}  // namespace cistern::server
