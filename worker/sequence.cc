#include "worker/sequence.h"

#include <utility>

namespace baton {

Sequence::Sequence(Attempt attempt) : attempt_(std::move(attempt)), tokens_(attempt_.prompt) {
  tokens_.reserve(attempt_.prompt.size() + attempt_.sampling.max_tokens);
  history_.AddPrompt(attempt_.prompt);
  for (TokenId token : attempt_.prior_output) Append(token);
}

void Sequence::Append(TokenId token) {
  tokens_.push_back(token);
  history_.AddOutput(token);
}

void Sequence::AddPages(std::vector<PageRef> pages) {
  for (PageRef& page : pages) {
    page_ids_.push_back(page.id());
    pages_.push_back(std::move(page));
  }
}

void Sequence::DropPages() {
  page_ids_.clear();
  pages_.clear();
}

Sequence::End Sequence::EndAfter(TokenId token) const {
  if (attempt_.sampling.IsStop(token)) return End::kStop;
  return output_tokens() >= attempt_.sampling.max_tokens ? End::kLength : End::kNo;
}

}  // namespace baton
