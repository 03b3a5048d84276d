// A training that may be published: its folder and that of the versions.
#pragma once

#include "app/export/publish.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {

class PublishFixture : public RunFixture {
 protected:
  PublishOptions Options() const {
    PublishOptions options;
    options.model.config = options.state = folder_ + "/run";
    options.version.out = folder_ + "/serving";
    options.poll_ms = 1;
    return options;
  }
};

}  // namespace cistern::app
