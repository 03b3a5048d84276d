// Secrets in texts that leave the machine.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace cistern::app {

// The text, with "[removed]" in place of
//   - the value after a name that contains "password", "passwd", "secret", "token", "credential" or
//     "access_key" (any case; "-" counts as "_"), as in name=VALUE, name: VALUE, "name": "VALUE"
//     and
//     --name VALUE;
//   - the user and password of a URL: scheme://USER:PASSWORD@host;
//   - private keys in PEM form.
// A secret that is none of these stays: whoever sends the text should read it.
std::string WithoutSecrets(absl::string_view text);

}  // namespace cistern::app
