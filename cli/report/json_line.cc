// SPDX-License-Identifier: Apache-2.0
#include "cli/report/json_line.h"

#include <google/protobuf/util/json_util.h>

#include "text/utf8.h"

namespace baton {

std::string ToJsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // The conversion fails only for well-known types that have no JSON form. The API has no such fields.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  std::string storage;
  return std::string(RepairUtf8(json, storage));
}

}  // namespace baton
