// SPDX-License-Identifier: Apache-2.0
#include "cli/pairs/verify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/pairs/send.h"

namespace baton {
namespace {

using Requests = std::vector<v1::GenerateRequest>;

// Output tokens after which a sequence migrates.
constexpr uint32_t kMigrateAfter = 4;
// An answer that ends before its sequence has migrated is asked for again, twice as long, as often as this.
constexpr int kMigrationTries = 5;
constexpr size_t kPromptsOfAMigration = 2;

v1::GenerateRequest Pinned(v1::GenerateRequest request, const WorkerPair& pair, const std::string& salt) {
  *request.mutable_pin() = PinTo(pair);
  request.set_cache_salt(salt);
  return request;
}

// Returns why the answer does not show what its request asked for; empty if the answer does.
std::string WhyNotAsPinned(const SentAnswer& sent, const v1::Pin& pin) {
  if (sent.finish.attempts().empty()) return "the answer names no workers";
  const v1::AttemptInfo& last = sent.finish.attempts(sent.finish.attempts_size() - 1);
  const bool migrates = !pin.migrate_to().empty();
  const std::string& decode = migrates ? pin.migrate_to() : pin.decode_worker();
  const std::string computed_at = last.prefill_worker().empty() ? last.decode_worker() : last.prefill_worker();
  const std::string& prefill = migrates ? pin.decode_worker() : pin.prefill_worker();
  if (last.decode_worker() == decode && computed_at == prefill) return "";
  return absl::StrCat("the answer came from ", computed_at, "+", last.decode_worker(),
                      ", though the request was pinned");
}

bool HasMigrated(const SentAnswer& sent) {
  return std::ranges::any_of(sent.finish.attempts(),
                             [](const v1::AttemptInfo& attempt) { return attempt.ended_by() == "migrated"; });
}

// The expected answer to one prompt.
struct Reference {
  ComparedAnswer answer;
  WorkerPair from;
  size_t agreeing = 0;
  size_t asked = 0;
};

// One group's checks.
class GroupRun {
 public:
  GroupRun(Client& client, const WorkerGroup& group, const VerifyOptions& options, SteadyTime deadline,
           Interrupt& interrupt, const std::function<void(const std::string&)>& progress)
      : client_(client),
        options_(options),
        deadline_(deadline),
        interrupt_(interrupt),
        progress_(progress),
        prompts_(MakePrompts(group, options.prompts)),
        references_(prompts_.size()) {
    result_.group = group;
  }

  VerifiedGroup Run() {
    if (result_.group.pairs.empty()) {
      for (const VerifyCheck check : kVerifyChecks) result_.not_run[check] = "the serving workers form no pair";
      return std::move(result_);
    }
    Alone();
    if (std::ranges::none_of(references_, [](const auto& reference) { return reference.has_value(); })) {
      for (const VerifyCheck check : kVerifyChecks) {
        if (check != VerifyCheck::kAlone) result_.not_run[check] = "no pair answered a request alone";
      }
      return std::move(result_);
    }
    Load();
    Cached();
    Migrations();
    return std::move(result_);
  }

 private:
  void Begin(VerifyCheck check, size_t paths, const char* what) {
    progress_(absl::StrCat(result_.group.model, ": ", NameOf(check), ", ", paths, " ", what));
  }

  std::vector<SentAnswer> SendAll(const Requests& requests, int at_once) {
    return Send(client_, requests,
                {.at_once = at_once, .request_timeout = options_.request_timeout, .deadline = deadline_}, interrupt_);
  }

  // Sends every prompt to every pair, one at a time on an empty cache. Then compares all with what most pairs say.
  void Alone() {
    const std::vector<WorkerPair>& pairs = result_.group.pairs;
    Begin(VerifyCheck::kAlone, pairs.size(), "pairs");
    // A pair without others is compared with itself.
    const size_t rounds = pairs.size() == 1 ? 2 : 1;
    struct Run {
      WorkerPair pair;
      Requests requests;
      std::vector<SentAnswer> answers;
    };
    std::vector<Run> runs;
    for (size_t round = 0; round < rounds; ++round) {
      for (const WorkerPair& pair : pairs) {
        Run& run = runs.emplace_back();
        run.pair = pair;
        for (const v1::GenerateRequest& prompt : prompts_) run.requests.push_back(Pinned(prompt, pair, FreshSalt()));
        run.answers = SendAll(run.requests, 1);
      }
    }
    for (size_t i = 0; i < prompts_.size(); ++i) {
      std::vector<const Run*> answered;
      for (const Run& run : runs) {
        const bool usable = run.answers[i].state == SentAnswer::State::kAnswered &&
                            WhyNotAsPinned(run.answers[i], run.requests[i].pin()).empty();
        if (usable) answered.push_back(&run);
      }
      for (const Run* run : answered) {
        const ComparedAnswer& answer = run->answers[i].answer;
        const auto agreeing = static_cast<size_t>(
            std::ranges::count_if(answered, [&](const Run* other) { return other->answers[i].answer == answer; }));
        if (references_[i] && agreeing <= references_[i]->agreeing) continue;
        references_[i] = Reference{answer, run->pair, agreeing, answered.size()};
      }
      for (const Run& run : runs) Compare(VerifyCheck::kAlone, run.pair.name(), i, run.requests[i], run.answers[i]);
    }
  }

  // Sends all prompts at once, or more than once each, on an empty cache.
  void Load() {
    Begin(VerifyCheck::kLoad, result_.group.pairs.size(), "pairs");
    const size_t count = std::max(prompts_.size(), static_cast<size_t>(options_.at_once));
    for (const WorkerPair& pair : result_.group.pairs) {
      Requests requests;
      for (size_t i = 0; i < count; ++i) {
        requests.push_back(Pinned(prompts_[i % prompts_.size()], pair, FreshSalt()));
      }
      const std::vector<SentAnswer> answers = SendAll(requests, options_.at_once);
      for (size_t i = 0; i < count; ++i) {
        Compare(VerifyCheck::kLoad, pair.name(), i % prompts_.size(), requests[i], answers[i]);
      }
    }
  }

  // Sends all prompts with one salt, and then each again alone.
  void Cached() {
    Begin(VerifyCheck::kCached, result_.group.pairs.size(), "pairs");
    std::vector<std::string> uncached;
    for (const WorkerPair& pair : result_.group.pairs) {
      bool some_cached = false;
      const std::string salt = FreshSalt();
      Requests requests;
      for (const v1::GenerateRequest& prompt : prompts_) requests.push_back(Pinned(prompt, pair, salt));
      SendAll(requests, options_.at_once);
      const std::vector<SentAnswer> answers = SendAll(requests, 1);
      for (size_t i = 0; i < prompts_.size(); ++i) {
        const v1::Usage& usage = answers[i].finish.usage();
        const bool cached = usage.cached_prompt_tokens() + usage.decode_cached_prompt_tokens() > 0;
        const bool equal = references_[i] && answers[i].answer == references_[i]->answer;
        if (answers[i].state == SentAnswer::State::kAnswered && equal && !cached) {
          continue;  // equal, but not what was to be shown
        }
        some_cached = true;
        Compare(VerifyCheck::kCached, pair.name(), i, requests[i], answers[i]);
      }
      if (!some_cached) uncached.push_back(pair.name());
    }
    if (uncached.empty()) return;
    result_.not_run[VerifyCheck::kCached] =
        absl::StrCat("no prompt was cached at ", absl::StrJoin(uncached, ", "),
                     ": --prefix-cache is off, or the prompts are shorter than a page");
  }

  void Migrations() {
    const std::vector<PlannedMigration>& migrations = result_.group.migrations;
    if (migrations.empty()) {
      result_.not_run[VerifyCheck::kMigration] = "the group has one decode worker, and a migration needs two";
      return;
    }
    if (!CanMigrate()) {
      result_.not_run[VerifyCheck::kMigration] =
          absl::StrCat("answers have at most ", kMigrateAfter, " tokens: --output-tokens, or the model's context");
      return;
    }
    Begin(VerifyCheck::kMigration, migrations.size(), "migrations");
    size_t next = 0;
    for (const PlannedMigration& migration : migrations) {
      for (size_t k = 0; k < std::min(kPromptsOfAMigration, prompts_.size()); ++k) {
        Migrate(migration, next++ % prompts_.size());
      }
    }
  }

  bool CanMigrate() const {
    return std::ranges::any_of(prompts_,
                               [](const auto& prompt) { return prompt.sampling().max_tokens() > kMigrateAfter; });
  }

  // The workers decide how fast a sequence migrates. An answer that ended before is asked for again, twice as long.
  void Migrate(const PlannedMigration& migration, size_t index) {
    v1::GenerateRequest prompt = prompts_[index];
    prompt.mutable_sampling()->set_ignore_eos(true);
    const uint32_t context = result_.group.max_context_tokens;
    const uint32_t room = context - std::min(context, static_cast<uint32_t>(prompt.token_ids().ids_size()));
    for (int tries = 1;; ++tries) {
      v1::GenerateRequest request = Pinned(prompt, migration.from, FreshSalt());
      request.mutable_pin()->set_migrate_to(migration.to);
      request.mutable_pin()->set_migrate_after_tokens(kMigrateAfter);
      const SentAnswer sent = SendAll({request}, 1).front();
      const uint32_t tokens = prompt.sampling().max_tokens();
      const bool ended_before = sent.state == SentAnswer::State::kAnswered && !HasMigrated(sent);
      if (ended_before && tries < kMigrationTries && tokens < room) {
        prompt.mutable_sampling()->set_max_tokens(std::min(tokens * 2, room));
        continue;
      }
      const std::string path = migration.name();
      if (ended_before) {
        return Fail(VerifyCheck::kMigration, path, index,
                    absl::StrCat("the answer of ", sent.answer.token_ids.size(),
                                 " tokens ended before the sequence had migrated"));
      }
      return Compare(VerifyCheck::kMigration, path, index, request, sent, ReferenceTo(prompt, index));
    }
  }

  // Returns the expected answer to a prompt with another length or end. Asks the pair that the expected answers come
  // from.
  const Reference* ReferenceTo(const v1::GenerateRequest& prompt, size_t index) {
    if (!references_[index]) return nullptr;
    const v1::SamplingParams& asked = prompts_[index].sampling();
    const bool same =
        prompt.sampling().max_tokens() == asked.max_tokens() && prompt.sampling().ignore_eos() == asked.ignore_eos();
    if (same) return &*references_[index];
    const auto [found, added] = longer_.try_emplace({index, prompt.sampling().max_tokens()});
    if (added) {
      const WorkerPair& pair = references_[index]->from;
      const v1::GenerateRequest request = Pinned(prompt, pair, FreshSalt());
      const SentAnswer sent = SendAll({request}, 1).front();
      if (sent.state == SentAnswer::State::kAnswered && WhyNotAsPinned(sent, request.pin()).empty()) {
        found->second = Reference{sent.answer, pair, 1, 1};
      }
    }
    return found->second ? &*found->second : nullptr;
  }

  void Compare(VerifyCheck check, const std::string& path, size_t prompt, const v1::GenerateRequest& request,
               const SentAnswer& sent) {
    Compare(check, path, prompt, request, sent, references_[prompt] ? &*references_[prompt] : nullptr);
  }

  void Compare(VerifyCheck check, const std::string& path, size_t prompt, const v1::GenerateRequest& request,
               const SentAnswer& sent, const Reference* reference) {
    if (sent.state == SentAnswer::State::kNotSent) {
      Count(check, path, &VerifyCounts::not_sent);
      return;
    }
    if (sent.state == SentAnswer::State::kFailed) return Fail(check, path, prompt, sent.reason);
    if (const std::string why = WhyNotAsPinned(sent, request.pin()); !why.empty()) {
      return Fail(check, path, prompt, why);
    }
    if (reference == nullptr) return Fail(check, path, prompt, "no expected answer is known");
    const std::optional<AnswerDifference> difference = FirstDifference(reference->answer, sent.answer);
    Count(check, path, difference ? &VerifyCounts::different : &VerifyCounts::equal);
    if (!difference || result_.first_difference) return;
    result_.first_difference = VerifyMismatch{.check = check,
                                              .prompt = prompt,
                                              .path = path,
                                              .expected_from = reference->from.name(),
                                              .agreeing = reference->agreeing,
                                              .asked = reference->asked,
                                              .difference = *difference,
                                              .request = request};
  }

  void Fail(VerifyCheck check, const std::string& path, size_t prompt, std::string reason) {
    Count(check, path, &VerifyCounts::failed);
    if (!result_.first_failure) result_.first_failure = VerifyFailure{check, prompt, path, std::move(reason)};
  }

  void Count(VerifyCheck check, const std::string& path, uint64_t VerifyCounts::* counter) {
    ++(result_.checks[check].*counter);
    ++(result_.paths[path][check].*counter);
  }

  Client& client_;
  const VerifyOptions& options_;
  const SteadyTime deadline_;
  Interrupt& interrupt_;
  const std::function<void(const std::string&)>& progress_;
  const Requests prompts_;
  std::vector<std::optional<Reference>> references_;                        // by prompt
  std::map<std::pair<size_t, uint32_t>, std::optional<Reference>> longer_;  // by prompt and max_tokens
  VerifiedGroup result_;
};

}  // namespace

const char* NameOf(VerifyCheck check) {
  switch (check) {
    case VerifyCheck::kAlone: return "alone";
    case VerifyCheck::kLoad: return "load";
    case VerifyCheck::kCached: return "cached";
    case VerifyCheck::kMigration: return "migration";
  }
  return "?";
}

VerifyResult Verify(Client& client, const std::vector<WorkerGroup>& groups, const VerifyOptions& options,
                    Interrupt& interrupt, const std::function<void(const std::string&)>& progress) {
  VerifyResult result;
  const SteadyTime start = SteadyTime::Now();
  for (const WorkerGroup& group : groups) {
    result.groups.push_back(GroupRun(client, group, options, start + options.timeout, interrupt, progress).Run());
  }
  result.took = SteadyTime::Now() - start;
  return result;
}

bool Passed(const VerifyResult& result, bool strict) {
  uint64_t equal = 0;
  for (const VerifiedGroup& group : result.groups) {
    if (strict && !group.not_run.empty()) return false;
    for (const VerifyCheck check : kVerifyChecks) {
      const auto found = group.checks.find(check);
      const VerifyCounts counts = found == group.checks.end() ? VerifyCounts{} : found->second;
      if (counts.different + counts.failed + counts.not_sent > 0) return false;
      if (counts.equal == 0 && !group.not_run.contains(check)) return false;
      equal += counts.equal;
    }
  }
  return equal > 0;
}

}  // namespace baton
