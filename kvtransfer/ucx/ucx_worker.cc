// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/ucx_worker.h"

#include <ucs/config/global_opts.h>

#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"

extern "C" void ucs_debug_disable_signals(void);  // exported by libucs, but in no installed header

namespace baton {
namespace {

struct Setting {
  const char* name;
  const char* value;
};

absl::Status Configure(const NetworkChoice& network, ucp_config_t* config) {
  // A frame must leave at once, and UCX 1.13 needs a network card's answer to send memory that it does not copy.
  const bool only_tcp = network.transports == "tcp";
  // The code depends on these settings, which override the environment.
  const Setting settings[] = {
      {"TLS", network.transports.c_str()},
      {"NET_DEVICES", network.devices.c_str()},
      // A frame is one fragment (frame.h), which leaves at once. The receiver copies it once, into place.
      {"TX_SEG_SIZE", kTcpSegment},
      {"RX_SEG_SIZE", kTcpSegment},
      {"ZCOPY_THRESH", only_tcp ? "auto" : "inf"},
      // Otherwise connecting blocks the I/O thread, and UCX 1.13 aborts the process if the peer ends before the
      // connection is up.
      {"CONN_NB", "y"},
      // Disables rendezvous, which would write into memory at times of UCX's choice.
      {"RNDV_THRESH", "inf"},
      {"PROTO_ENABLE", "n"},
      {"MAX_RNDV_RAILS", "1"},
      // Otherwise UCX wakes a thread of its own when data arrives at a worker that sends nothing, and that thread wakes
      // ours.
      {"ADAPTIVE_PROGRESS", "n"},
      // We send our own heartbeats. A stopped peer on shared memory must find its connection when it returns.
      {"KEEPALIVE_INTERVAL", "inf"},
  };
  for (const Setting& setting : settings) {
    BATON_RETURN_IF_ERROR(FromUcx(ucp_config_modify(config, setting.name, setting.value),
                                  absl::StrCat("cannot set UCX's ", setting.name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ucp_context_h> CreateContext(const NetworkChoice& network) {
  ucp_config_t* config = nullptr;
  BATON_RETURN_IF_ERROR(FromUcx(ucp_config_read(nullptr, nullptr, &config), "cannot read the UCX configuration"));
  const absl::Cleanup release = [config] { ucp_config_release(config); };
  BATON_RETURN_IF_ERROR(Configure(network, config));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_WAKEUP | UCP_FEATURE_AM;
  params.name = "baton";
  ucp_context_h context = nullptr;
  BATON_RETURN_IF_ERROR(FromUcx(ucp_init(&params, config, &context), "cannot start UCX"));
  return context;
}

}  // namespace

absl::Status FromUcx(ucs_status_t status, const std::string& what) {
  if (status == UCS_OK) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", ucs_status_string(status));
  switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE: return absl::ResourceExhaustedError(text);
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR: return absl::InvalidArgumentError(text);
    case UCS_ERR_CANCELED: return absl::CancelledError(text);
    default: return absl::UnavailableError(text);
  }
}

// UCX's crash handlers would hide ours and the sanitizers'. UCX's log goes to stdout and repeats errors that we report
// ourselves.
void ConfigureUcxLibrary() {
  static const bool once = [] {
    if (UcxUserSetting("UCX_HANDLE_ERRORS").empty()) ucs_debug_disable_signals();
    if (UcxUserSetting("UCX_LOG_LEVEL").empty()) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    return true;
  }();
  static_cast<void>(once);
}

std::string UcxUserSetting(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing changes the environment
  return value == nullptr ? "" : value;
}

bool UcxMayShareMemory() {
  const std::string transports = UcxUserSetting("UCX_TLS");
  if (transports.empty()) return true;
  for (const absl::string_view name : absl::StrSplit(transports, ',')) {
    for (const absl::string_view shared : {"all", "sm", "shm", "mm", "posix", "sysv"}) {
      if (name == shared) return true;
    }
  }
  return false;
}

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(const NetworkChoice& network) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  BATON_ASSIGN_OR_RETURN(worker->context_, CreateContext(network));
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  BATON_RETURN_IF_ERROR(
      FromUcx(ucp_worker_create(worker->context_, &params, &worker->worker_), "cannot create a UCX worker"));
  BATON_RETURN_IF_ERROR(
      FromUcx(ucp_worker_get_efd(worker->worker_, &worker->event_fd_), "cannot get the UCX event descriptor"));
  return worker;
}

UcxWorker::~UcxWorker() {
  if (abandoned_) return;
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

void UcxWorker::Abandon() { abandoned_ = true; }

absl::StatusOr<std::string> UcxWorker::Address() const {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  BATON_RETURN_IF_ERROR(
      FromUcx(ucp_worker_get_address(worker_, &address, &bytes), "cannot get the address of the UCX worker"));
  std::string text(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return text;
}

}  // namespace baton
