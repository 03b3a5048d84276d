// What saves and days do to the rows of a table whose accessor keeps statistics.
#pragma once

#include <cstdint>

namespace cistern {

namespace v1 {
enum SaveMode : int;  // proto/control_plane.proto
}

// value: the cells of a row; no function reads or writes those of embedx.
//
// Threads: immutable; any thread.
class RowLifecycle {
 public:
  virtual ~RowLifecycle() = default;

  // Whether a save of `mode` includes this value.
  virtual bool IsSaved(v1::SaveMode mode, const float* value) const = 0;
  // Updates the statistics after a save of `mode`; returns whether the value changed.
  virtual bool UpdateAfterSave(v1::SaveMode mode, float* value) const = 0;
  // Decays the value; returns false if it must be deleted.
  virtual bool Shrink(float* value) const = 0;
  // What Shrink would return. Changes nothing.
  virtual bool WouldKeep(const float* value) const = 0;
  // The shows and clicks of the value as of today.
  struct Counts {
    double show, click;
  };
  virtual Counts CountsOf(const float* value) const = 0;
  // The number of the day on which the value was last seen; 0 if the table counts no days. Does not
  // depend on today's number.
  virtual uint32_t DayOf(const float* value) const { return 0; }
};

}  // namespace cistern
