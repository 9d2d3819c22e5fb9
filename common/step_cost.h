// SPDX-License-Identifier: Apache-2.0
// The time of a step, as a linear function of the step's work. The scheduler bounds chunks by a time. The router
// foresees how long a prompt holds up the sequences beside.
//
//   seconds = step + prompt_token * prompt tokens + decode_row * decoding sequences
//             + prompt_attended * attended tokens of prompts + decode_attended * attended tokens of decoding sequences
//
// Each step reads the weights once. Products grow with the rows, attention with the tokens that the rows attend to. The
// rows of a prompt share each read of the KV. A decoding sequence reads its KV for one row, which costs more per token.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace baton {

struct StepWork {
  double prompt_tokens = 0;
  double decode_rows = 0;
  // The sums over the rows of prompts, and of decoding sequences, of the tokens that the row attends to.
  double prompt_attended = 0;
  double decode_attended = 0;

  // Adds the `tokens` of a prompt after `position` tokens that have KV.
  void AddPrompt(int position, int tokens) {
    prompt_tokens += tokens;
    prompt_attended += tokens * (position + (tokens + 1) / 2.0);
  }
  void AddDecode(int position) {
    decode_rows += 1;
    decode_attended += position + 1;
  }
  StepWork& operator+=(const StepWork& other) {
    prompt_tokens += other.prompt_tokens;
    decode_rows += other.decode_rows;
    prompt_attended += other.prompt_attended;
    decode_attended += other.decode_attended;
    return *this;
  }
};

// All figures in seconds, none negative. All zero: not known.
struct StepCost {
  double step = 0;
  double prompt_token = 0;
  double decode_row = 0;
  double prompt_attended = 0;
  double decode_attended = 0;

  bool known() const { return step > 0 || prompt_token > 0 || decode_row > 0; }
  double Seconds(const StepWork& work) const {
    return step + prompt_token * work.prompt_tokens + decode_row * work.decode_rows +
           prompt_attended * work.prompt_attended + decode_attended * work.decode_attended;
  }
  // Returns how many tokens of a prompt a step may compute beside `work`, after `position` tokens, within `seconds`.
  int PromptTokensWithin(double seconds, const StepWork& work, int position) const;
};

struct MeasuredStep {
  StepWork work;
  double seconds = 0;  // positive
};
// Least squares of relative errors. No figure is negative. Without a step of some kind, that kind's figure is 0.
StepCost FitStepCost(std::span<const MeasuredStep> steps);

// Estimates a StepCost from the steps that ran. Steps of a kind (prompt tokens and rows of about the same number) share
// a cell, which keeps the mean of its recent steps. All cells count alike, so that thousands of steps of one kind do
// not push out the few steps of another kind.
//
// Not thread-safe.
class StepCostEstimate {
 public:
  void Add(const StepWork& work, double seconds);
  // Fits the figures to the means of the cells.
  StepCost Fit() const;

 private:
  static constexpr size_t kPromptCells = 14;  // 0, 1, 2..3, 4..7, ... 4096 and more
  static constexpr size_t kRowCells = 10;     // 0, 1, 2..3, ... 256 and more
  static constexpr size_t kContextCells = 3;  // attended tokens per row: under 512, under 4096, and more

  struct Cell {
    StepWork work;  // mean
    double seconds = 0;
    int steps = 0;
  };
  std::array<Cell, kPromptCells * kRowCells * kContextCells> cells_;
};

}  // namespace baton
