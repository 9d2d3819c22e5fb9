// SPDX-License-Identifier: Apache-2.0
// A TemplateValue is a JSON-like value that a caller passes to a chat template.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace baton {

class TemplateValue {
 public:
  using List = std::vector<TemplateValue>;
  using Dict = std::vector<std::pair<std::string, TemplateValue>>;  // in insertion order; keys are unique

  TemplateValue() = default;  // none
  TemplateValue(bool value) : data_(value) {}
  TemplateValue(int64_t value) : data_(value) {}
  TemplateValue(int value) : data_(int64_t{value}) {}
  TemplateValue(double value) : data_(value) {}
  TemplateValue(std::string value) : data_(std::move(value)) {}
  TemplateValue(const char* value) : data_(std::string(value)) {}
  TemplateValue(List value) : data_(std::move(value)) {}
  TemplateValue(Dict value) : data_(std::move(value)) {}

  using Data = std::variant<std::monostate, bool, int64_t, double, std::string, List, Dict>;
  const Data& data() const& { return data_; }
  Data data() && { return std::move(data_); }

 private:
  Data data_;
};

}  // namespace baton
