// Text in columns, each as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace baton {

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // As many cells as the header; an empty one shows as "-".
  void AddRow(std::vector<std::string> cells);

  // A column of numbers ("12", "3.45", and "-" where there is none) is aligned to the right.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace baton
