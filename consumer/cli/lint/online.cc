#include "consumer/cli/lint/online.h"

#include <algorithm>
#include <array>
#include <future>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/decode/registry/registry_client.h"
#include "consumer/encode/record_encoder.h"

namespace fencepost::cli {

std::vector<config::Finding> LintOnline(const config::LoadResult& loaded, consumer::Millis limit) {
  constexpr std::array kParts{LintBrokers, LintRegistries, LintDatabase, LintLockNodes};
  std::vector<std::future<std::vector<config::Finding>>> parts;
  for (const auto part : kParts) {
    parts.push_back(std::async(std::launch::async, [&loaded, limit, part] {
      OnlineLint lint(loaded, limit);
      part(lint);
      return lint.findings.Take();
    }));
  }
  std::vector<config::Finding> all;
  for (auto& part : parts) {
    for (config::Finding& finding : part.get()) all.push_back(std::move(finding));
  }
  std::ranges::stable_sort(all, {}, [](const auto& f) { return std::tuple(f.line, f.col); });
  return all;
}

// Any schema id shows whether the registry answers; nobody needs to have registered it.
void LintRegistries(OnlineLint& lint) {
  const consumer::DecodeOptions& decode = lint.options().kafka.decode;
  if (!decode.registry.url.empty()) {
    consumer::RegistryClient registry(decode.registry);
    if (const auto asked = registry.Fetch(1); !asked && !asked.error().unknown) {
      lint.Error("kafka.decode.registry.url",
                 fmt::format("the schema registry gives no schemas: {}; check its address, user "
                             "and password",
                             asked.error().text));
    }
  }
  const auto* kafka = std::get_if<consumer::KafkaOutputOptions>(&lint.options().output);
  if (kafka == nullptr) return;
  consumer::EncodeOptions encode = kafka->encode;
  if (!encode.key.Needed() && !encode.value.Needed()) return;
  encode.key.register_schema = encode.value.register_schema = false;  // nothing is registered
  consumer::RecordEncoder encoder(encode);
  const auto prepared = encoder.Prepare();
  if (prepared) return;
  const bool will_be = prepared.error().code == consumer::kSchemaMissing &&
                       (kafka->encode.key.register_schema || kafka->encode.value.register_schema);
  if (will_be) return;
  lint.Error(prepared.error().where,
             fmt::format("{}; {}", prepared.error().what,
                         prepared.error().hint.empty() ? "see output.kafka.encode"
                                                       : prepared.error().hint));
}

void LintDatabase(OnlineLint& lint) {
  const auto view = LedgerView::Of(lint.options());
  if (view == nullptr) return;
  const auto checked = view->Check(lint.limit);
  if (checked) return;
  fencepost::Error error = checked.error();
  if (error.code == "ledger_missing") return lint.Warning("output", error.Line());
  // The hint is for workers, whose batches wait.
  if (error.code == "output_unavailable") error.hint = "check that it runs, its address and login";
  lint.Error("output", error.Line());
}

// Where a quorum is there, a node without is a warning: workers get over it.
void LintLockNodes(OnlineLint& lint) {
  const consumer::LockSection& lock = lint.options().lock;
  StoreView view({lock.redis, lock.lock}, locking::StoreCreation::kNever);
  constexpr const char* key = "lock.redis.nodes";
  const auto known = [](const locking::NodeStatus& node) {
    return node.open || !node.problem.empty() || (node.connected && !node.sentinel);
  };
  view.WatchUntil([&] { return view.All(known); }, lint.limit);
  const auto problem = view.store().Problem();
  if (problem && problem->code == "no_store") {
    lint.Warning(key,
                 "the lock nodes have no lock store yet: make it by `fencepost locks init`, or the "
                 "first worker makes one that is in quarantine at first");
  } else if (problem) {
    lint.Error(key, problem->Line());
  }
  for (int node = 0; node < view.size(); ++node) {
    const locking::NodeStatus status = view.Status(node);
    const auto tell = [&](const std::string& what) {
      const std::string line =
          fmt::format("lock node {} ({}): {}", locking::NodeLetter(node), view.Address(node), what);
      view.store().Available() ? lint.Warning(key, line) : lint.Error(key, line);
    };
    if (!status.connected || !status.problem.empty()) {
      tell(WhyNoAnswer(status));
    } else if (status.clock_offset && std::chrono::abs(*status.clock_offset) > lock.lock.max_skew) {
      lint.Warning("lock.max_skew",
                   fmt::format("lock node {} ({}): its clock is {:+.3f} s off this machine's, more "
                               "than lock.max_skew: let both follow one time server (chrony, NTP)",
                               locking::NodeLetter(node), view.Address(node),
                               static_cast<double>(status.clock_offset->count()) / 1e9));
    }
  }
}

}  // namespace fencepost::cli
