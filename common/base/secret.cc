#include "common/base/secret.h"

#include <sys/random.h>

#include "common/base/check.h"

namespace cistern {

uint64_t NewSecret() {
  uint64_t secret = 0;
  while (secret == 0) {
    CISTERN_CHECK(getrandom(&secret, sizeof(secret), 0) == sizeof(secret));
  }
  return secret;
}

}  // namespace cistern
