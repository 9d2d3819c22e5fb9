// SPDX-License-Identifier: Apache-2.0
#include "cli/console/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <unistd.h>

#include <cstdio>
#include <cwchar>
#include <string_view>
#include <utility>

#include "cli/console/interrupt.h"

namespace baton {
namespace {

constexpr int kHistoryLines = 1000;
constexpr wchar_t kReplacement = 0xFFFD;

// Makes this thread's characters UTF-8 while it lives: libedit asks the locale for them.
class Utf8Scope {
 public:
  Utf8Scope() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = uselocale(utf8_);
  }
  ~Utf8Scope() {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }
  Utf8Scope(const Utf8Scope&) = delete;
  Utf8Scope& operator=(const Utf8Scope&) = delete;

 private:
  const locale_t utf8_;
  locale_t before_ = nullptr;
};

// Opens a stream onto a duplicate of `fd`, which closing the stream closes.
FILE* OpenDuplicate(int fd, const char* mode) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  FILE* const file = fdopen(own, mode);
  if (file == nullptr) close(own);
  return file;
}

}  // namespace

struct LineEditor::State {
  State(int input, std::string text, const Interrupt& from)
      : input_fd(input), prompt(std::move(text)), interrupt(from) {}
  ~State() {
    if (editor != nullptr) el_end(editor);
    if (history != nullptr) history_end(history);
    if (input_file != nullptr) std::fclose(input_file);
    if (screen_file != nullptr) std::fclose(screen_file);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static State& Of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<State*>(data);
  }
  static char* Prompt(EditLine* editor) { return Of(editor).prompt.data(); }
  static int ReadCharacter(EditLine* editor, wchar_t* character);

  // Returns false at the end of the input and when interrupted.
  bool ReadByte(char* byte);

  const int input_fd;
  std::string prompt;
  const Interrupt& interrupt;
  FILE* input_file = nullptr;
  FILE* screen_file = nullptr;
  EditLine* editor = nullptr;
  History* history = nullptr;
};

bool LineEditor::State::ReadByte(char* byte) {
  while (interrupt.WaitForInput(input_fd)) {
    const ssize_t count = read(input_fd, byte, 1);
    if (count >= 0 || errno != EINTR) return count == 1;
  }
  return false;
}

// Stores the next character and returns 1, or returns 0 at the end and when interrupted. The reader of libedit would
// miss an interrupt: the signal is blocked and comes through a descriptor.
int LineEditor::State::ReadCharacter(EditLine* editor, wchar_t* character) {
  constexpr size_t kNul = 0;
  constexpr auto kIncomplete = static_cast<size_t>(-2);
  constexpr auto kInvalid = static_cast<size_t>(-1);
  State& state = Of(editor);
  std::mbstate_t shift = {};
  // Drop NUL: the terminal gives it for a Ctrl-D typed before libedit took over, and libedit would quote the next key.
  size_t length = kNul;
  while (length == kNul || length == kIncomplete) {
    char byte = 0;
    if (!state.ReadByte(&byte)) return 0;
    length = std::mbrtowc(character, &byte, 1, &shift);  // NOLINT(concurrency-mt-unsafe): `shift` is its only state
  }
  if (length == kInvalid) *character = kReplacement;
  return 1;
}

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;

std::unique_ptr<LineEditor> LineEditor::Create(int input_fd, int screen_fd, std::string prompt,
                                               const Interrupt& interrupt) {
  if (isatty(input_fd) == 0 || isatty(screen_fd) == 0) return nullptr;
  const Utf8Scope utf8;
  auto state = std::make_unique<State>(input_fd, std::move(prompt), interrupt);
  state->input_file = OpenDuplicate(input_fd, "r");
  state->screen_file = OpenDuplicate(screen_fd, "w");
  if (state->input_file == nullptr || state->screen_file == nullptr) return nullptr;
  state->editor =
      el_init_fd("baton", state->input_file, state->screen_file, state->screen_file, input_fd, screen_fd, screen_fd);
  state->history = history_init();
  if (state->editor == nullptr || state->history == nullptr) return nullptr;
  HistEvent event;
  history(state->history, &event, H_SETSIZE, kHistoryLines);
  history(state->history, &event, H_SETUNIQUE, 1);
  el_set(state->editor, EL_CLIENTDATA, state.get());
  el_set(state->editor, EL_EDITOR, "emacs");
  el_set(state->editor, EL_PROMPT, &State::Prompt);
  el_set(state->editor, EL_HIST, &history, state->history);
  el_set(state->editor, EL_GETCFN, &State::ReadCharacter);
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(state)));
}

LineSource::Result LineEditor::Next(std::string* line) {
  const Utf8Scope utf8;
  el_resize(state_->editor);  // the terminal may have another size since the last line
  int count = 0;
  const char* const text = el_gets(state_->editor, &count);
  if (state_->interrupt.triggered()) {
    std::fputs("^C\n", state_->screen_file);
    std::fflush(state_->screen_file);
    return Result::kInterrupted;
  }
  if (text == nullptr || count <= 0) {
    std::fputs("\n", state_->screen_file);
    std::fflush(state_->screen_file);
    return Result::kEnd;
  }
  std::string_view typed(text, static_cast<size_t>(count));
  if (typed.ends_with('\n')) typed.remove_suffix(1);
  *line = typed;
  HistEvent event;
  if (line->find_first_not_of(" \t") != std::string::npos) history(state_->history, &event, H_ENTER, line->c_str());
  return Result::kLine;
}

}  // namespace baton
