// SPDX-License-Identifier: Apache-2.0
#include "kvtransfer/ucx/network.h"

#include <uct/api/uct.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"
#include "kvtransfer/ucx/frame.h"
#include "kvtransfer/ucx/ucx_worker.h"

namespace baton {
namespace {

// UCX's own header of an active message, with room to spare.
constexpr size_t kUcxHeaderBytes = 64;

bool Uses(const NetworkResource& resource, absl::string_view family) {
  return resource.transport == family || absl::StartsWith(resource.transport, absl::StrCat(family, "_"));
}

// Returns whether the user's UCX_TLS names the transport: by its name, its family, "ib" or "all".
bool IsNamed(const NetworkResource& resource, const std::string& transports) {
  for (absl::string_view name : absl::StrSplit(transports, ',')) {
    if (absl::EndsWith(name, "_x")) name.remove_suffix(2);  // any provider
    if (Uses(resource, name)) return true;
    if (!Uses(resource, "rc") && (name == "all" || (name == "ib" && !Uses(resource, "tcp")))) return true;
  }
  return false;
}

bool IsAllowed(const NetworkResource& resource, const NetworkWish& wish) {
  if (Uses(resource, "tcp")) return true;  // for peers that have nothing else
  if (wish.tcp_only) return false;
  if (!wish.user_transports.empty()) return IsNamed(resource, wish.user_transports);
  return Uses(resource, "dc") || Uses(resource, "ud");
}

bool IsOnDevice(const NetworkResource& resource, const NetworkWish& wish) {
  if (!wish.user_devices.empty()) {
    const std::vector<std::string> devices = absl::StrSplit(wish.user_devices, ',');
    return wish.user_devices == "all" || std::find(devices.begin(), devices.end(), resource.device) != devices.end();
  }
  if (wish.interface.empty() || resource.device == wish.interface) return true;
  const std::string name = resource.device.substr(0, resource.device.find(':'));
  return std::find(wish.rdma_devices.begin(), wish.rdma_devices.end(), name) != wish.rdma_devices.end();
}

std::string Describe(const std::vector<NetworkResource>& resources) {
  return absl::StrJoin(resources, ", ", [](std::string* out, const NetworkResource& resource) {
    absl::StrAppend(out, resource.transport, " on ", resource.device);
  });
}

// Opens the transport on the device, because only an open interface tells the size of its messages.
absl::StatusOr<size_t> MaxMessageBytes(uct_md_h domain, uct_worker_h worker, const uct_tl_resource_desc_t& resource) {
  uct_iface_config_t* config = nullptr;
  BATON_RETURN_IF_ERROR(FromUcx(uct_md_iface_config_read(domain, resource.tl_name, nullptr, nullptr, &config),
                                "cannot read a UCX transport's configuration"));
  const absl::Cleanup release = [config] { uct_config_release(config); };
  if (absl::string_view(resource.tl_name) == "tcp") {
    for (const char* const name : {"TX_SEG_SIZE", "RX_SEG_SIZE"}) {
      BATON_RETURN_IF_ERROR(FromUcx(uct_config_modify(config, name, kTcpSegment), "cannot set a segment size of UCX"));
    }
  }
  uct_iface_params_t params{};
  params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
  params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
  params.mode.device.tl_name = resource.tl_name;
  params.mode.device.dev_name = resource.dev_name;
  uct_iface_h interface = nullptr;
  BATON_RETURN_IF_ERROR(
      FromUcx(uct_iface_open(domain, worker, &params, config, &interface), "cannot open a UCX transport"));
  const absl::Cleanup close = [interface] { uct_iface_close(interface); };
  uct_iface_attr_t attributes{};
  BATON_RETURN_IF_ERROR(FromUcx(uct_iface_query(interface, &attributes), "cannot query a UCX transport"));
  return (attributes.cap.flags & UCT_IFACE_FLAG_AM_BCOPY) != 0 ? attributes.cap.am.max_bcopy : 0;
}

// Appends the network transports of one memory domain. A transport that cannot be opened is left out.
void AppendResources(uct_component_h component, const char* domain_name, uct_worker_h worker,
                     std::vector<NetworkResource>& found) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  const absl::Cleanup release_config = [config] { uct_config_release(config); };
  uct_md_h domain = nullptr;
  if (uct_md_open(component, domain_name, config, &domain) != UCS_OK) return;
  const absl::Cleanup close = [domain] { uct_md_close(domain); };
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) return;
  const absl::Cleanup release = [resources] { uct_release_tl_resource_list(resources); };
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].dev_type != UCT_DEVICE_TYPE_NET) continue;
    const absl::StatusOr<size_t> bytes = MaxMessageBytes(domain, worker, resources[i]);
    if (bytes.ok() && *bytes > 0) found.push_back({resources[i].tl_name, resources[i].dev_name, *bytes});
  }
}

}  // namespace

std::string NetworkChoice::ToString() const { return Describe(resources); }

absl::StatusOr<NetworkChoice> ChooseNetwork(const std::vector<NetworkResource>& found, const NetworkWish& wish) {
  NetworkChoice choice;
  choice.max_payload_bytes = kMaxPayloadBytes;
  std::vector<std::string> transports;
  std::vector<std::string> devices;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const NetworkResource& resource : found) {
    constexpr size_t kHeaders = sizeof(FrameHeader) + kUcxHeaderBytes;
    if (resource.max_message_bytes < kHeaders + kMinPayloadBytes) continue;
    if (!IsAllowed(resource, wish) || !IsOnDevice(resource, wish)) continue;
    choice.resources.push_back(resource);
    choice.max_payload_bytes = std::min(choice.max_payload_bytes, resource.max_message_bytes - kHeaders);
    add(transports, resource.transport);
    add(devices, resource.device);
  }
  if (choice.resources.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "UCX finds no network transport", wish.interface.empty() ? "" : absl::StrCat(" on ", wish.interface),
        wish.user_devices.empty() ? "" : absl::StrCat(" with UCX_NET_DEVICES=", wish.user_devices),
        ", expected one of ", found.empty() ? "none" : Describe(found)));
  }
  choice.transports = absl::StrJoin(transports, ",");
  choice.devices = wish.interface.empty() && wish.user_devices.empty() ? "all" : absl::StrJoin(devices, ",");
  return choice;
}

absl::StatusOr<std::vector<NetworkResource>> FindNetworkResources() {
  ucs_async_context_t* async = nullptr;
  BATON_RETURN_IF_ERROR(FromUcx(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), "cannot start UCX"));
  const absl::Cleanup destroy_async = [async] { ucs_async_context_destroy(async); };
  uct_worker_h worker = nullptr;
  BATON_RETURN_IF_ERROR(
      FromUcx(uct_worker_create(async, UCS_THREAD_MODE_SERIALIZED, &worker), "cannot create a UCX worker"));
  const absl::Cleanup destroy_worker = [worker] { uct_worker_destroy(worker); };
  uct_component_h* components = nullptr;
  unsigned count = 0;
  BATON_RETURN_IF_ERROR(FromUcx(uct_query_components(&components, &count), "cannot list UCX's components"));
  const absl::Cleanup release = [components] { uct_release_component_list(components); };
  std::vector<NetworkResource> found;
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &attributes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (domains.empty() || uct_component_query(components[i], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains) {
      AppendResources(components[i], domain.md_name, worker, found);
    }
  }
  return found;
}

std::vector<std::string> RdmaDevicesOf(const std::string& interface) {
  std::vector<std::string> devices;
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::path("/sys/class/net") / interface / "device/infiniband";
  for (const auto& device : std::filesystem::directory_iterator(folder, none)) {
    devices.push_back(device.path().filename().string());
  }
  return devices;
}

}  // namespace baton
