// SPDX-License-Identifier: Apache-2.0
// Formats text in columns, each as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace baton {

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // Adds a row. Missing cells and empty cells show as "-"; cells beyond the header are dropped.
  void AddRow(std::vector<std::string> cells);

  // Aligns columns of numbers, such as "12", "3.45" and "-", to the right.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace baton
