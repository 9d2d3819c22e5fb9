#include "cli/report/json_line.h"

#include <google/protobuf/util/json_util.h>

#include "text/utf8.h"

namespace baton {

std::string ToJsonLine(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for well-known types with contents that have no JSON form; the API uses none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  std::string storage;
  return std::string(RepairUtf8(json, storage));
}

}  // namespace baton
