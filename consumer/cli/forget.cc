// fencepost forget FILE --id ID | --topic T --partition P --from O --to O [--execute]: on purpose,
// so that records are processed again; without --execute it prints what would be. The DONE
// marks go first, on every lock node, then the ledger rows: whatever stops it in between, run it
// again to finish.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/ledger_view.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/shared/position.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/decode/registry/registry_decoder.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/record/identity.h"
#include "consumer/record/position_id.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;
using consumer::TopicReader;
using consumer::TopicRecord;
using locking::OpKind;
using locking::ReplyCode;

constexpr Millis kKafkaLimit{10'000};
constexpr Millis kForgetLimit{3'000};
constexpr Millis kLedgerLimit{30'000};
constexpr std::size_t kBatch = 500;
constexpr std::size_t kMaxHeldTold = 20;

struct ForgetArguments {
  PipelineFiles pipeline;
  std::string id;
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<consumer::Offset> from;
  std::optional<consumer::Offset> to;
  bool execute = false;
};

tl::unexpected<Error> Fail(std::string what, std::string hint = "", std::string where = "") {
  return tl::unexpected(Error{"forget", std::move(what), std::move(where), std::move(hint)});
}

// The ids of the records in [from, to], each once.
struct Range {
  std::vector<std::string> ids;
  std::size_t records = 0;
  std::size_t without_id = 0;
  std::string cluster;  // by position
};

tl::expected<Range, Error> ReadIds(const PipelineOptions& options,
                                   const ForgetArguments& arguments) {
  auto reader = TopicReader::Make(options.kafka);
  if (!reader) return tl::unexpected(reader.error());
  const auto ranges = (*reader)->Ranges(arguments.topic, kKafkaLimit);
  if (!ranges) return tl::unexpected(ranges.error());
  const auto count = static_cast<std::int32_t>(ranges->size());
  if (*arguments.partition >= count) {
    return Fail(fmt::format("topic {} has no partition {}", arguments.topic, *arguments.partition),
                fmt::format("it has {}, counted from 0", count));
  }
  std::string cluster;
  if (options.identity.ByPosition()) {
    const auto asked = (*reader)->ClusterId(kKafkaLimit);
    if (!asked) return tl::unexpected(asked.error());
    cluster = *asked;
  }
  consumer::PartitionRange range = (*ranges)[static_cast<std::size_t>(*arguments.partition)];
  range.first = std::max(range.first, *arguments.from);
  if (*arguments.to < range.end) range.end = *arguments.to + 1;
  consumer::Identifier identifier(options.identity, cluster);
  consumer::Identity identity;
  Range found{.cluster = cluster};
  const auto decoder = consumer::MakeRecordDecoder(options.kafka.decode);
  std::string no_schema;
  const auto read = (*reader)->Read(
      {range},
      [&](const TopicRecord& one) {
        consumer::Record record = one.record;
        if (decoder != nullptr) {
          const auto decoded = consumer::DecodeNow(*decoder, record, kKafkaLimit);
          if (!decoded) {
            no_schema = decoded.error();
            return false;
          }
        }
        ++found.records;
        if (identifier.Identify(record, one.where, identity)) {
          found.ids.push_back(identity.id);
        } else {
          ++found.without_id;
        }
        return true;
      },
      kKafkaLimit);
  if (!read) return tl::unexpected(read.error());
  if (!no_schema.empty()) return tl::unexpected(Error{"no_schema", no_schema, "", ""});
  std::sort(found.ids.begin(), found.ids.end());
  found.ids.erase(std::unique(found.ids.begin(), found.ids.end()), found.ids.end());
  return found;
}

// `take` gets some hundreds at a time, until it fails.
using Ids = std::vector<std::string>;
tl::expected<void, Error> InBatches(
    const Ids& ids, const std::function<tl::expected<void, Error>(const Ids&)>& take) {
  tl::expected<void, Error> done;
  for (std::size_t from = 0; from < ids.size() && done; from += kBatch) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    done =
        take(Ids(begin, begin + static_cast<std::ptrdiff_t>(std::min(kBatch, ids.size() - from))));
  }
  return done;
}

// What the nodes said of a lock, together.
struct LockSeen {
  std::string id;
  bool counted = false;  // a node gave the answer that is counted
  locking::Token token;  // of the lease that lasts longest
  Millis rest{0};        // of it; 0: no node holds one
};

tl::unexpected<Error> NoAnswer(const StoreView& view, int node) {
  return Fail(
      fmt::format("lock node {} does not answer ({}); a mark is taken back only where all {} "
                  "nodes do",
                  locking::NodeLetter(node), view.WhyNoAnswer(node), view.size()),
      "no ledger row was deleted; run it again when the node is back", view.Address(node));
}

// One round of questions to all nodes, about the locks of `ids`. Error: a node did not answer.
tl::expected<std::vector<LockSeen>, Error> AskNodes(StoreView& view, const PipelineOptions& options,
                                                    const Ids& ids, OpKind kind,
                                                    ReplyCode counted) {
  std::set<std::string> locked;  // a block has many of them
  for (const std::string& id : ids) locked.insert(consumer::LockedId(id, LockBlock(options)));
  std::vector<LockSeen> locks;
  const auto ask = [&](const Ids& batch) -> tl::expected<void, Error> {
    Ids names;
    for (const std::string& id : batch) names.push_back(consumer::LockName(options.name, id));
    const auto answers = view.Ask(kind, names, kForgetLimit);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      LockSeen& lock = locks.emplace_back(LockSeen{.id = batch[i]});
      for (int node = 0; node < view.size(); ++node) {
        const locking::Reply& reply = answers[i][static_cast<std::size_t>(node)];
        if (!NodeAnswered(reply.code)) return NoAnswer(view, node);
        lock.counted = lock.counted || reply.code == counted;
        if (reply.code != ReplyCode::kContended || reply.rest <= lock.rest) continue;
        lock.token = reply.token;
        lock.rest = reply.rest;
      }
    }
    return {};
  };
  return InBatches({locked.begin(), locked.end()}, ask).map([&] { return locks; });
}

// Error: a worker holds some of them; each was printed. A lease under the token of the ledger's row
// was left behind: nobody works under it. By position a row is a range's, with its newest token.
tl::expected<void, Error> RefuseHeld(const std::vector<LockSeen>& locks, LedgerView* ledger,
                                     bool by_position, const char* outcome) {
  std::vector<LockSeen> held;
  Ids ids;
  for (const LockSeen& lock : locks) {
    if (lock.rest <= Millis(0)) continue;
    held.push_back(lock);
    ids.push_back(lock.id);
  }
  auto lock = held.begin();
  const auto look = [&](const Ids& batch) {
    return ledger->Lookup(batch, kLedgerLimit).map([&](const LedgerView::Rows& rows) {
      for (const auto& row : rows) {
        const bool left =
            row && (by_position ? row->token >= lock->token : row->token == lock->token);
        if (left) lock->rest = Millis(0);
        ++lock;
      }
    });
  };
  if (ledger != nullptr) {
    if (auto looked = InBatches(ids, look); !looked) return looked;
  }
  std::erase_if(held, [](const LockSeen& one) { return one.rest == Millis(0); });
  if (held.empty()) return {};
  for (std::size_t i = 0; i < std::min(held.size(), kMaxHeldTold); ++i) {
    PrintError(fmt::format("{} is held by a worker under token {} for another {}",
                           Printable(held[i].id, 600), held[i].token.value(),
                           SpanText(held[i].rest)));
  }
  return Fail(fmt::format("{} of the locks {} records are being processed; {}", held.size(),
                          held.size() == 1 ? "is held: its" : "are held: their", outcome),
              "stop the workers, wait for the rest, and run it again");
}

struct Forgotten {
  std::size_t marks = 0;  // ids of which a node had a mark
  std::size_t rows = 0;
  std::optional<Position> position;  // of a single id, where its row knew it
};

// Counts the marks, then takes them back if told to.
tl::expected<std::size_t, Error> OnMarks(StoreView& view, const PipelineOptions& options,
                                         const std::vector<std::string>& ids, LedgerView* ledger,
                                         bool execute) {
  const auto round = [&](OpKind kind, ReplyCode counted, const char* outcome) {
    return AskNodes(view, options, ids, kind, counted)
        .and_then([&](const std::vector<LockSeen>& locks) {
          const auto marks = std::ranges::count_if(locks, &LockSeen::counted);
          const bool by_position = options.identity.ByPosition();
          return RefuseHeld(locks, ledger, by_position, outcome).map([&] {
            return static_cast<std::size_t>(marks);
          });
        });
  };
  view.Connect(kForgetLimit);
  for (int node = 0; node < view.size(); ++node) {  // also where there is no id to ask for
    const locking::NodeStatus status = view.Status(node);
    if (!status.connected || !status.open) return NoAnswer(view, node);
  }
  const auto counted = round(OpKind::kInspect, ReplyCode::kDone, "nothing was forgotten");
  if (!counted || !execute) return counted;
  return round(OpKind::kForget, ReplyCode::kFreed,
               "marks were taken back, but no ledger row was deleted");
}

// Counts the rows, or deletes them too.
tl::expected<void, Error> OnRows(LedgerView& ledger, const Ids& ids, bool execute,
                                 Forgotten& forgotten) {
  const auto count = [&](const Ids& batch) {
    return ledger.Lookup(batch, kLedgerLimit).map([&](const LedgerView::Rows& rows) {
      for (const auto& row : rows) forgotten.rows += row ? 1 : 0;
      if (ids.size() == 1 && rows.front()) {
        forgotten.position = ParsePosition(rows.front()->source);
      }
    });
  };
  if (!execute) return InBatches(ids, count);
  if (ids.size() == 1) (void)count(ids);  // where it was
  forgotten.rows = 0;
  return InBatches(ids,
                   [&](const Ids& batch) {
                     return ledger.Forget(batch, kLedgerLimit).map([&](std::size_t rows) {
                       forgotten.rows += rows;
                     });
                   })
      .map_error([&](Error error) {
        error.what = fmt::format("{}; {} marks were taken back and {} ledger rows deleted",
                                 error.what, forgotten.marks, forgotten.rows);
        error.hint = "run it again when the database answers";
        return error;
      });
}

// By position: whatever is done in [from, to], also where the topic has no record any more.
tl::expected<void, Error> TakeOffsetsBack(LedgerView& ledger, const ForgetArguments& arguments,
                                          const std::string& cluster, Forgotten& forgotten) {
  const consumer::PositionId first{.cluster = cluster,
                                   .topic = arguments.topic,
                                   .partition = *arguments.partition,
                                   .offset = *arguments.from};
  const auto gone = ledger.ForgetOffsets(first, *arguments.to, kLedgerLimit);
  if (!gone) return tl::unexpected(gone.error());
  forgotten.rows += *gone;
  return {};
}

void PrintWhatNext(const PipelineOptions& options, const std::optional<Position>& position) {
  const std::string place = position
                                ? fmt::format("--topic {}:{} --to-offset {}", position->where.topic,
                                              position->where.partition, position->offset)
                                : "--topic TOPIC:PARTITION --to-offset OFFSET";
  fmt::print(
      "the offset of group {} does not move. Where it is past the records, stop the "
      "workers, move it back, and start them:\n"
      "  kafka-consumer-groups.sh --bootstrap-server {} --group {} {} --reset-offsets --execute\n"
      "everything from there on is read again; what has a ledger row or a DONE mark is skipped\n",
      options.kafka.group, fmt::join(options.kafka.brokers, ","), options.kafka.group, place);
}

tl::expected<void, Error> Carry(const PipelineOptions& options, const ForgetArguments& arguments) {
  Range range;
  Forgotten forgotten;
  if (arguments.id.empty()) {
    auto read = ReadIds(options, arguments);
    if (!read) return tl::unexpected(read.error());
    range = std::move(*read);
    forgotten.position = Position{{arguments.topic, *arguments.partition}, *arguments.from};
    fmt::print(
        "{}/{} {} to {}: {} records, {} ids{}\n", arguments.topic, *arguments.partition,
        *arguments.from, *arguments.to, range.records, range.ids.size(),
        range.without_id > 0 ? fmt::format(", {} records without an id", range.without_id) : "");
    if (range.ids.empty() && range.cluster.empty())
      return Fail("there is no id to forget in this range");
  } else {
    range.ids = {consumer::StoredId(arguments.id)};
  }
  StoreView view({options.lock.redis, options.lock.lock}, locking::StoreCreation::kNever);
  const auto ledger = LedgerView::Of(options);
  const auto marks = OnMarks(view, options, range.ids, ledger.get(), arguments.execute);
  if (!marks) return tl::unexpected(marks.error());
  forgotten.marks = *marks;
  if (ledger != nullptr) {
    auto done = OnRows(*ledger, range.ids, arguments.execute, forgotten);
    if (done && arguments.execute && !range.cluster.empty()) {
      done = TakeOffsetsBack(*ledger, arguments, range.cluster, forgotten);
    }
    if (!done) return done;
  }
  const char* would = arguments.execute ? "" : "would be ";
  fmt::print("{} DONE mark{} {}taken back on all {} lock nodes, {}\n", forgotten.marks,
             forgotten.marks == 1 ? "" : "s", would, view.size(),
             ledger == nullptr
                 ? fmt::format("no ledger (the output is {})", OutputName(options.output))
                 : fmt::format("{} ledger row{} {}deleted", forgotten.rows,
                               forgotten.rows == 1 ? "" : "s", would));
  if (!arguments.execute) {
    fmt::print("nothing was changed: --execute does it\n");
    return {};
  }
  PrintWhatNext(options, forgotten.position);
  return {};
}

// What is wrong with the command line; empty: nothing.
std::string Wrong(const ForgetArguments& arguments) {
  const bool range = arguments.partition && arguments.from && arguments.to;
  const bool any =
      !arguments.topic.empty() || arguments.partition || arguments.from || arguments.to;
  if (arguments.id.empty() ? arguments.topic.empty() || !range : any) {
    return "forget: name the records, either by --id ID or by --topic T --partition P --from O "
           "--to O";
  }
  if (range && *arguments.from > *arguments.to) return "forget: --from is after --to";
  return "";
}

int Forget(const ForgetArguments& arguments) {
  if (const std::string wrong = Wrong(arguments); !wrong.empty()) return ExitUsage(wrong);
  const auto pipelines = LoadPipelines(arguments.pipeline);
  if (!pipelines) return kUsage;
  const PipelineOptions& options = pipelines->front();
  const auto& topics = options.kafka.topics;
  if (!arguments.topic.empty() && !consumer::ReadTopics(topics).Has(arguments.topic)) {
    return ExitUsage(fmt::format("pipeline {} does not read topic {}; it reads {}", options.name,
                                 arguments.topic, fmt::join(topics, ", ")));
  }
  if (!arguments.id.empty()) {
    const auto wrong =
        WhyNoPosition(options, arguments.id, "--topic T --partition P --from O --to O");
    if (wrong) return ExitUsage("forget: " + *wrong);
  }
  const auto done = Carry(options, arguments);
  if (done) return kOk;
  std::fflush(stdout);
  return ExitFailed(done.error());
}

}  // namespace

void AddForget(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<ForgetArguments>();
  CLI::App* command = app.add_subcommand(
      "forget",
      "take back that records are done, so that they are processed again; a dry run, unless "
      "--execute is given");
  command->footer(
      "First their DONE marks on every lock node (all must answer), then their ledger rows. "
      "Refused\n"
      "while a worker holds one of them. What they did to the output stays; the group's offset "
      "does\n"
      "not move (the last lines say how to move it).");
  AddPipelineFile(*command, arguments->pipeline);
  command->add_option("--id", arguments->id, "one record's id, or");
  command->add_option("--topic", arguments->topic, "a topic that the pipeline reads,");
  command->add_option("--partition", arguments->partition, "one partition of it,")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--from", arguments->from, "from this offset")->check(CLI::NonNegativeNumber);
  command->add_option("--to", arguments->to, "to this one, which is included")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--execute", arguments->execute, "do it; without this, a dry run");
  command->callback([&run, arguments] { run = [arguments] { return Forget(*arguments); }; });
}

}  // namespace fencepost::cli
