// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/address.h"
#include "common/metrics_vllm.h"
#include "common/status_macros.h"

namespace baton {

MetricsNames MetricsNamesFrom(std::string_view name) {
  return name == "vllm" ? MetricsNames::kVllm : name == "both" ? MetricsNames::kBoth : MetricsNames::kBaton;
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen, MetricsNames names) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(names));
  if (listen.empty()) return server;
  BATON_RETURN_IF_ERROR(CheckCanListen(listen));
  BATON_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listen));
  BATON_ASSIGN_OR_RETURN(server->http_, MetricsHttp::Start(address, [&page = *server] { return page.Page(); }));
  return server;
}

std::string MetricsServer::Page() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  const auto append = [&families](std::vector<prometheus::MetricFamily> more) {
    families.insert(families.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  if (names_ != MetricsNames::kBaton) {
    std::vector<prometheus::MetricFamily> renamed = VllmFamilies(families);
    if (names_ == MetricsNames::kVllm) families.clear();
    append(std::move(renamed));
  }
  append(process_.Collect());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace baton
