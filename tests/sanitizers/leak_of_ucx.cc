// SPDX-License-Identifier: Apache-2.0
// Loses a configuration that UCX allocated, which is no part of an abandoned worker: LeakSanitizer must report the
// leak, whatever abandoned.lsan hides.
#include <ucp/api/ucp.h>

namespace {

// Not inlined, so that no register or stack slot of main still holds the pointer.
[[gnu::noinline]] ucs_status_t Leak() {
  ucp_config_t* config = nullptr;
  return ucp_config_read(nullptr, nullptr, &config);
}

}  // namespace

int main() { return Leak() == UCS_OK ? 0 : 2; }
