// SPDX-License-Identifier: Apache-2.0
#include "cli/report/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace baton {
namespace {

bool IsNumber(const std::string& cell) { return cell.find_first_not_of("0123456789.") == std::string::npos; }

}  // namespace

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
  std::vector<bool> has_numbers(columns, false);
  std::vector<bool> has_words(columns, false);
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (size_t column = 0; column < columns; ++column) {
      const std::string& cell = rows_[row][column];
      width[column] = std::max(width[column], cell.size());
      if (row == 0 || cell == "-") continue;
      (IsNumber(cell) ? has_numbers : has_words)[column] = true;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const size_t padding = width[column] - row[column].size();
      if (column > 0) line += "  ";
      const bool right = has_numbers[column] && !has_words[column];
      if (right) line.append(padding, ' ');
      line += row[column];
      if (!right) line.append(padding, ' ');
    }
    absl::StripTrailingAsciiWhitespace(&line);
    text += line;
    text += '\n';
  }
  return text;
}

}  // namespace baton
