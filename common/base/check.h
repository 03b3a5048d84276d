// CISTERN_CHECK aborts the process on a bug of our own. Errors from the outside world are returned
// as absl::Status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CISTERN_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
