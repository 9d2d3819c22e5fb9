// SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

using Kind = ChaosEvent::Kind;

// The distributions of standard libraries differ; the schedule of a seed must not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(size_t end) { return static_cast<int>(engine_() % end); }
  bool OneIn(int n) { return Below(n) == 0; }
  double Share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

class Scheduler {
 public:
  Scheduler(const ChaosPlan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    processes_ = plan.workers;
    processes_.insert(processes_.end(), plan.routers.begin(), plan.routers.end());
    nodes_ = processes_;
    nodes_.emplace_back("client");
  }

  std::vector<ChaosEvent> Run() {
    for (int i = 0; i < plan_.events; ++i) {
      now_ += -std::log(1 - random_.Share()) * plan_.mean_gap;
      if (random_.OneIn(12)) {
        Disturb();
      } else {
        AddRequest();
      }
    }
    std::stable_sort(events_.begin(), events_.end(),
                     [](const ChaosEvent& a, const ChaosEvent& b) { return a.at < b.at; });
    return events_;
  }

 private:
  void AddRequest() {
    ChaosEvent event{
        .at = now_, .request = random_.Below(plan_.requests), .router = random_.Below(plan_.routers.size())};
    if (random_.OneIn(6)) event.cancel_after_chunks = 1 + random_.Below(30);
    if (random_.OneIn(10)) event.deadline = absl::Milliseconds(1 + random_.Below(400));
    events_.push_back(event);
  }

  void Disturb() {
    const absl::Duration lasts = random_.Share() * plan_.longest;
    const int kind = random_.Below(plan_.network ? 9 : 5);
    if (kind < 5) return DisturbProcess(kind, lasts);
    if (kind < 7) return CutOff(lasts);
    ChaosEvent event{.at = now_, .kind = kind == 7 ? Kind::kDelay : Kind::kLoss, .on = true};
    absl::Duration& until = busy_[kind == 7 ? "delay" : "loss"];
    if (until > now_) return AddRequest();
    events_.push_back(event);
    event.at = until = now_ + lasts;
    event.on = false;
    events_.push_back(event);
  }

  void DisturbProcess(int kind, absl::Duration lasts) {
    const std::string& node = random_.Of(random_.OneIn(5) ? plan_.routers : plan_.workers);
    if (busy_[node] > now_) return AddRequest();
    const bool is_router = std::find(plan_.routers.begin(), plan_.routers.end(), node) != plan_.routers.end();
    ChaosEvent event{.at = now_, .kind = Kind::kKill, .node = node};
    ChaosEvent end{.kind = Kind::kRestart, .node = node};
    if (kind >= 3) {
      event.kind = Kind::kDrain;
      lasts = plan_.drain;
    } else if (kind > 0 || (is_router && random_.OneIn(2))) {
      event.kind = Kind::kStop;
      end.kind = Kind::kContinue;
    }
    end.at = busy_[node] = now_ + lasts;
    events_.push_back(event);
    events_.push_back(end);
  }

  void CutOff(absl::Duration lasts) {
    ChaosEvent event{.at = now_, .kind = Kind::kCut, .node = random_.Of(nodes_), .other = random_.Of(nodes_)};
    event.both = random_.OneIn(2);
    absl::Duration& until = busy_[std::min(event.node, event.other) + "-" + std::max(event.node, event.other)];
    if (event.node == event.other || until > now_) return AddRequest();
    events_.push_back(event);
    event.kind = Kind::kRestore;
    event.at = until = now_ + lasts;
    events_.push_back(event);
  }

  const ChaosPlan& plan_;
  Random random_;
  std::vector<std::string> processes_;
  std::vector<std::string> nodes_;
  absl::Duration now_;
  std::map<std::string, absl::Duration> busy_;  // by process or connection: end of the disturbance
  std::vector<ChaosEvent> events_;
};

const char* Name(Kind kind) {
  switch (kind) {
    case Kind::kRequest: return "request";
    case Kind::kKill: return "kill";
    case Kind::kDrain: return "drain";
    case Kind::kRestart: return "restart";
    case Kind::kStop: return "stop";
    case Kind::kContinue: return "continue";
    case Kind::kCut: return "cut";
    case Kind::kRestore: return "restore";
    case Kind::kDelay: return "delay";
    case Kind::kLoss: return "loss";
  }
  return "?";
}

}  // namespace

std::vector<ChaosEvent> MakeSchedule(const ChaosPlan& plan, uint64_t seed) { return Scheduler(plan, seed).Run(); }

std::string Describe(const ChaosEvent& event) {
  std::string text = absl::StrCat(absl::ToInt64Milliseconds(event.at), " ms ", Name(event.kind));
  switch (event.kind) {
    case Kind::kRequest:
      absl::StrAppend(&text, " ", event.request, " to router ", event.router);
      if (event.cancel_after_chunks > 0)
        absl::StrAppend(&text, ", cancelled after ", event.cancel_after_chunks, " chunks");
      if (event.deadline > absl::ZeroDuration())
        absl::StrAppend(&text, ", due in ", absl::FormatDuration(event.deadline));
      break;
    case Kind::kCut:
    case Kind::kRestore: absl::StrAppend(&text, " ", event.node, event.both ? " <-> " : " -> ", event.other); break;
    case Kind::kDelay:
    case Kind::kLoss: absl::StrAppend(&text, event.on ? " on" : " off"); break;
    default: absl::StrAppend(&text, " ", event.node);
  }
  return text;
}

}  // namespace baton::testing
