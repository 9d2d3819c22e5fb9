#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace baton {

Table::Table(std::vector<std::string> header) : rows_({std::move(header)}) {}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  for (std::string& cell : cells) {
    if (cell.empty()) cell.push_back('-');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> width(columns, 0);
  std::vector<bool> numeric(columns, rows_.size() > 1);
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (size_t column = 0; column < columns; ++column) {
      const std::string& cell = rows_[row][column];
      width[column] = std::max(width[column], cell.size());
      if (row > 0 && !absl::ascii_isdigit(static_cast<unsigned char>(cell[0]))) numeric[column] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const size_t padding = width[column] - row[column].size();
      if (column > 0) line += "  ";
      if (numeric[column]) line.append(padding, ' ');
      line += row[column];
      if (!numeric[column]) line.append(padding, ' ');
    }
    absl::StripTrailingAsciiWhitespace(&line);
    text += line;
    text += '\n';
  }
  return text;
}

}  // namespace baton
