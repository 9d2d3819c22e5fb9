// SPDX-License-Identifier: Apache-2.0
#include "cli/report/doctor.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/report/doctor_paths.h"

namespace baton {
namespace {

using Kind = Finding::Kind;

constexpr double kMaxClockSeconds = 1;    // more distorts ages, logs and traces
constexpr uint64_t kMinOpenFiles = 4096;  // a stream takes a share of a connection, a connection a file
constexpr double kFullShare = 0.95;       // of a pool's pages
constexpr std::string_view kNumericsParts[] = {"weights", "KV type or page size", "kernels", "tensor parallelism"};
constexpr size_t kKernelsPart = 2;

// The kernel families, best last, and what each needs in addition to the family before (engine/kernels/cpu).
struct Family {
  std::string_view name;
  std::vector<std::string_view> needs;
};
const std::vector<Family>& Families() {
  static const std::vector<Family> families = {{"scalar", {}},
                                               {"avx2", {"avx2", "fma", "f16c"}},
                                               {"avx512", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}},
                                               {"avx512-vnni", {"avx512vnni"}},
                                               {"avx512-bf16", {"avx512bf16"}}};
  return families;
}

// Returns the family's place among the families from 1; 0 for another backend's.
size_t RankOf(std::string_view family) {
  const auto found = std::ranges::find(Families(), family, &Family::name);
  return found == Families().end() ? 0 : static_cast<size_t>(found - Families().begin()) + 1;
}

std::string BestFamily(const v1::ProcessFacts& facts) {
  const auto has = [&](std::string_view feature) { return std::ranges::count(facts.cpu_features(), feature) > 0; };
  std::string_view best;
  for (const Family& family : Families()) {
    if (!std::ranges::all_of(family.needs, has)) break;
    best = family.name;
  }
  return std::string(best);
}

class Examination {
 public:
  Examination(const v1::GetStatusResponse& status, std::string_view client_version, const MeasuredPaths& measured)
      : status_(status), client_version_(client_version), measured_(measured) {}

  std::vector<Finding> Run() {
    if (status_.workers().empty()) {
      Add(Kind::kProblem, "the router has no workers", "Give the router --workers or --workers-file.");
    }
    Versions();
    for (const v1::WorkerInfo& worker : status_.workers()) Worker(worker);
    WorkerIds();
    Models();
    for (const v1::PairInfo& pair : status_.pairs()) Pair(pair);
    Kernels();
    for (Finding& finding : ExaminePaths(status_, measured_)) findings_.push_back(std::move(finding));
    OpenFiles("the router", status_.router());
    if (status_.ready()) Add(Kind::kFine, absl::StrCat("the router is ready, with ", Ready(), " ready pairs"));
    std::ranges::stable_sort(findings_, {}, &Finding::kind);
    return std::move(findings_);
  }

 private:
  void Add(Kind kind, std::string what, std::string advice = "") {
    findings_.push_back({kind, std::move(what), std::move(advice)});
  }

  int64_t Ready() const {
    return std::ranges::count_if(status_.pairs(), [](const v1::PairInfo& pair) { return pair.state() == "ready"; });
  }

  void Versions() {
    std::map<std::string, std::vector<std::string>> processes;  // by version
    processes[status_.router().version()].emplace_back("router");
    for (const v1::WorkerInfo& worker : status_.workers()) {
      if (!worker.facts().version().empty()) processes[worker.facts().version()].push_back(worker.worker_id());
    }
    if (processes.size() > 1) {
      std::vector<std::string> versions;
      versions.reserve(processes.size());
      for (const auto& [version, names] : processes) {
        versions.push_back(absl::StrCat(version, " (", absl::StrJoin(names, ", "), ")"));
      }
      Add(Kind::kWarning, absl::StrCat("the processes have different versions: ", absl::StrJoin(versions, ", ")),
          "Finish the upgrade.");
    } else {
      Add(Kind::kFine, absl::StrCat("all processes have version ", status_.router().version()));
    }
    if (status_.router().version() != client_version_) {
      Add(Kind::kWarning,
          absl::StrCat("the router has version ", status_.router().version(), ", this program ", client_version_),
          "Use the program of the router's version.");
    }
  }

  void Worker(const v1::WorkerInfo& worker) {
    const std::string name = absl::StrCat("worker ", worker.worker_id());
    if (worker.state() != "serving") {
      const bool drains = worker.state() == "draining";
      const bool switches = worker.state() == "switching";
      Add(drains || switches ? Kind::kWarning : Kind::kProblem,
          absl::StrCat(name, " at ", worker.address(), " is ", worker.state(), worker.detail().empty() ? "" : ": ",
                       worker.detail()),
          switches ? "Wait until the worker has its new role."
          : drains ? "Wait until the worker has ended, or start another one."
                   : "Check that the process runs, that the address is its --listen, and that no firewall is between.");
      return;
    }
    if (std::abs(worker.clock_ahead_seconds()) > kMaxClockSeconds) {
      Add(Kind::kWarning,
          absl::StrFormat("the clock of %s is %.1f s %s the router's", name, std::abs(worker.clock_ahead_seconds()),
                          worker.clock_ahead_seconds() > 0 ? "ahead of" : "behind"),
          "Synchronize the clocks (NTP): dates in logs and ages of requests depend on them.");
    }
    const v1::ProcessFacts& facts = worker.facts();
    if (facts.threads() > facts.cpus() && facts.cpus() > 0) {
      Add(Kind::kWarning, absl::StrCat(name, " has ", facts.threads(), " compute threads for ", facts.cpus(), " CPUs"),
          "Leave --threads at 0, or give the process more CPUs.");
    }
    OpenFiles(name, facts);
    if (worker.pages_quarantined() > 0) {
      Add(Kind::kWarning, absl::StrCat(name, " has ", worker.pages_quarantined(), " pages in quarantine"),
          "See BatonQuarantineStuck in docs/operations.md.");
    }
    if (worker.pages_total() > 0 && worker.pages_used() >= kFullShare * worker.pages_total()) {
      Add(Kind::kWarning, absl::StrCat(name, " uses ", worker.pages_used(), " of ", worker.pages_total(), " KV pages"),
          "Give more --kv-memory, store KV as int8 or fp8 (--kv-dtype), or add workers.");
    }
  }

  void OpenFiles(const std::string& name, const v1::ProcessFacts& facts) {
    if (facts.max_open_files() == 0 || facts.max_open_files() >= kMinOpenFiles) return;
    Add(Kind::kWarning, absl::StrCat(name, " may open only ", facts.max_open_files(), " files"),
        absl::StrCat("Raise the limit to at least ", kMinOpenFiles, " (ulimit -n, LimitNOFILE of systemd)."));
  }

  void WorkerIds() {
    std::set<std::string> seen;
    for (const v1::WorkerInfo& worker : status_.workers()) {
      if (seen.insert(worker.worker_id()).second) continue;
      Add(Kind::kProblem, absl::StrCat("two workers have the id ", worker.worker_id()),
          "Give each its own --worker-id, and list no address twice.");
    }
  }

  void Models() {
    struct Model {
      bool prefills = false;
      bool decodes = false;
      std::map<std::string, std::string> numerics;  // id -> a worker
    };
    std::map<std::string, Model> models;
    for (const v1::WorkerInfo& worker : status_.workers()) {
      if (worker.state() != "serving") continue;
      Model& model = models[worker.model()];
      model.prefills |= worker.role() != "decode";
      model.decodes |= worker.role() != "prefill";
      model.numerics.emplace(worker.numerics_id(), worker.worker_id());
    }
    for (const auto& [name, model] : models) {
      if (!model.prefills || !model.decodes) {
        Add(Kind::kProblem,
            absl::StrCat("model ", name, " has no serving ", model.prefills ? "decode" : "prefill", " worker"),
            model.prefills ? "Start baton-decode with the model." : "Start baton-prefill with the model.");
      }
      if (model.numerics.size() > 1) Numerics(name, model.numerics);
    }
  }

  // A numerics id has its parts between slashes.
  void Numerics(const std::string& model, const std::map<std::string, std::string>& workers) {
    const auto& [first_id, first] = *workers.begin();
    const auto& [second_id, second] = *workers.rbegin();
    const std::vector<std::string> a = absl::StrSplit(first_id, '/');
    const std::vector<std::string> b = absl::StrSplit(second_id, '/');
    std::vector<std::string> differences;
    for (size_t i = 0; i < std::min({a.size(), b.size(), std::size(kNumericsParts)}); ++i) {
      if (a[i] == b[i]) continue;
      differences.push_back(
          absl::StrCat(std::string(kNumericsParts[i]), " (", first, ": ", a[i], ", ", second, ": ", b[i], ")"));
    }
    Add(Kind::kProblem,
        absl::StrCat("workers of model ", model, " compute different numbers: ", absl::StrJoin(differences, "; ")),
        "Workers pair only if all parts are equal: same model files, --kv-dtype, --page-tokens, and --kernels, for "
        "instance --kernels avx2 where CPUs differ.");
  }

  void Pair(const v1::PairInfo& pair) {
    if (pair.state() == "ready") return;
    const bool soon = pair.state() == "unprobed" || pair.state() == "probing";
    Add(soon ? Kind::kWarning : Kind::kProblem,
        absl::StrCat("pair ", pair.prefill_worker(), "+", pair.decode_worker(), " is ", pair.state(),
                     pair.detail().empty() ? "" : ": ", pair.detail()),
        soon ? "Ask again in a few seconds."
             : "Check that both workers have the same secret, and that the prefill worker reaches --handoff-advertise "
               "of "
               "the decode worker.");
  }

  // Workers whose CPUs all offer a better kernel family than the one that they compute with.
  void Kernels() {
    struct Group {
      std::string used;
      std::string best;  // that all CPUs offer
      size_t workers = 0;
    };
    std::map<std::pair<std::string, std::string>, Group> groups;  // by model and numerics id
    for (const v1::WorkerInfo& worker : status_.workers()) {
      const std::vector<std::string> parts = absl::StrSplit(worker.numerics_id(), '/');
      if (worker.state() != "serving" || parts.size() <= kKernelsPart || worker.facts().cpu_features().empty())
        continue;
      Group& group = groups[{worker.model(), worker.numerics_id()}];
      group.used = parts[kKernelsPart].substr(0, parts[kKernelsPart].rfind('-'));
      const std::string best = BestFamily(worker.facts());
      if (group.workers++ == 0 || RankOf(best) < RankOf(group.best)) group.best = best;
    }
    for (const auto& [key, group] : groups) {
      if (RankOf(group.used) == 0 || RankOf(group.best) <= RankOf(group.used)) continue;
      Add(Kind::kWarning,
          absl::StrCat("the workers of model ", key.first, " compute with ", group.used,
                       " kernels, and their CPUs offer ", group.best),
          absl::StrCat("Start all of them without --kernels, or with --kernels ", group.best, "."));
    }
  }

  const v1::GetStatusResponse& status_;
  const std::string client_version_;
  const MeasuredPaths& measured_;
  std::vector<Finding> findings_;
};

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kProblem: return "problem";
    case Kind::kWarning: return "warning";
    case Kind::kFine: return "fine";
  }
  return "?";
}

}  // namespace

std::vector<Finding> Examine(const v1::GetStatusResponse& status, std::string_view client_version,
                             const MeasuredPaths& measured) {
  return Examination(status, client_version, measured).Run();
}

std::string ToText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    absl::StrAppendFormat(&text, "%-8s %s\n", NameOf(finding.kind), finding.what);
    if (!finding.advice.empty()) absl::StrAppend(&text, "         ", finding.advice, "\n");
  }
  return text;
}

}  // namespace baton
