// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/address.h"
#include "common/status_macros.h"

namespace baton {

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  if (listen.empty()) return server;
  BATON_RETURN_IF_ERROR(CheckCanListen(listen));
  BATON_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(listen));
  BATON_ASSIGN_OR_RETURN(server->http_, MetricsHttp::Start(address, [&page = *server] { return page.Page(); }));
  return server;
}

std::string MetricsServer::Page() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  std::vector<prometheus::MetricFamily> process = process_.Collect();
  families.insert(families.end(), std::make_move_iterator(process.begin()), std::make_move_iterator(process.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace baton
