#include "locking/redis/tools/raw_node.h"

#include <hiredis/hiredis.h>

#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/core/store/sentinel.h"
#include "locking/redis/engine/access.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/tools/heal_wire.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

constexpr std::string_view kScanned = "fencepost:*";
constexpr std::string_view kScanSize = "512";

std::string Command(std::initializer_list<std::string_view> words) {
  std::string command;
  AppendCommand(words, command);
  return command;
}

}  // namespace

RawNode::RawNode(asio::io_context& io, const RedisOptions& redis, std::size_t index)
    : io_(io), options_(MakeConnections(redis, LockOptions()).at(index)) {}

Error RawNode::Trouble(std::string what, std::string hint) const {
  return {"node", std::move(what), options_.address.text, std::move(hint)};
}

// --- one call ------------------------------------------------------------------------------------

void RawNode::OnStep(NodeSession::Step step) {
  using Step = NodeSession::Step;
  NodeSession& session = pump_->session();
  const Instant now = pump_->now().boot;
  switch (step) {
    case Step::kReply:
      reply_ = session.KeepReply();
      return;
    case Step::kPrepared:
      session.Up(now);
      [[fallthrough]];
    case Step::kAnswered:
      session.EndTurn();
      answered_ = true;
      return;
    case Step::kStalled:
      pump_->Do(session.Fail(
          {CommandError::kTimeout, fmt::format("no answer in {} ms", limit_.count()), ""}, now));
      return;
    case Step::kClose:
      lost_ = Trouble(session.failure().what, session.failure().hint);
      return;
    default:  // the pump's own
      return;
  }
}

void RawNode::Ask(std::string_view request, Millis limit) {
  answered_ = false;
  if (lost_) return;
  FENCEPOST_CHECK(pump_->session().stage() == NodeSession::Stage::kReady,
                  "a call while another one is out");
  limit_ = limit;
  pump_->out().append(request);
  pump_->BeginTurn(limit);
  pump_->session().Ask(1, NodeSession::Late::kDropped);
  pump_->Flush();
}

tl::expected<void, Error> RawNode::Await() {
  while (!answered_ && !lost_) {
    io_.restart();
    io_.run_one();
  }
  if (!answered_) return tl::unexpected(*lost_);
  return {};
}

tl::expected<ReplyPtr, Error> RawNode::AwaitReply() {
  if (auto answered = Await(); !answered) return tl::unexpected(answered.error());
  if (reply_->type != REDIS_REPLY_ERROR) return std::move(reply_);
  NodeError error = ReadNodeError(TextOf(*reply_));
  return tl::unexpected(
      Trouble(fmt::format("the node says: {}", error.text), std::move(error.hint)));
}

tl::expected<std::string, Error> RawNode::AwaitText() {
  return AwaitReply().map([](const ReplyPtr& reply) { return std::string(TextOf(*reply)); });
}

template <typename Parsed>
tl::expected<Parsed, Error> RawNode::Checked(tl::expected<Parsed, std::string> parsed) const {
  return std::move(parsed).map_error(
      [this](std::string why) { return Trouble(std::move(why), ""); });
}

// --- what is asked -------------------------------------------------------------------------------

tl::expected<void, Error> RawNode::Connect(Millis limit) {
  static const std::array<const Script*, 3> scripts = {&ScriptNamed("look"), &ScriptNamed("heal"),
                                                       &ScriptNamed("sentinel_write")};
  SessionOptions session = options_.Session();
  session.scripts = scripts;
  session.handshake_timeout = limit;
  pump_.emplace(io_, options_, std::move(session), static_cast<SessionPump::User&>(*this));
  pump_->Start();
  return Await();
}

tl::expected<InfoFields, Error> RawNode::ReadInfo(Millis limit) {
  InfoFields all;
  for (const char* section : {"server", "memory", "replication", "persistence", "keyspace"}) {
    auto fields = ReadInfo(section, limit);
    if (!fields) return fields;
    all.merge(*fields);
  }
  return all;
}

tl::expected<InfoFields, Error> RawNode::ReadInfo(std::string_view section, Millis limit) {
  Ask(Command({"INFO", section}), limit);
  return AwaitText().map(FieldsOf);
}

tl::expected<WallTime, Error> RawNode::ReadTime(Millis limit) {
  Ask(Command({"TIME"}), limit);
  const auto reply = AwaitReply();
  if (!reply) return tl::unexpected(reply.error());
  const auto time = TimeOf(**reply);
  if (!time) return tl::unexpected(Trouble("TIME was not answered as Redis does", ""));
  return *time;
}

tl::expected<std::optional<std::string>, Error> RawNode::ReadSentinel(Millis limit) {
  Ask(Command({"GET", kSentinelKey}), limit);
  return AwaitText().map([](std::string text) {
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  });
}

void RawNode::AskLook(std::span<const std::string> names, Millis limit) {
  std::string request;
  FormatLook(names, request);
  Ask(request, limit);
}

tl::expected<NodeSight, Error> RawNode::AwaitLook(std::size_t names) {
  return AwaitText().and_then(
      [&](const std::string& text) { return Checked(ParseLook(text, names)); });
}

tl::expected<HealPage, Error> RawNode::Scan(const std::string& cursor, Millis limit) {
  Ask(Command({"SCAN", cursor, "MATCH", kScanned, "COUNT", kScanSize}), limit);
  const auto reply = AwaitReply();
  if (!reply) return tl::unexpected(reply.error());
  const redisReply& answer = **reply;
  if (answer.type != REDIS_REPLY_ARRAY || answer.elements != 2 ||
      answer.element[1]->type != REDIS_REPLY_ARRAY) {
    return tl::unexpected(Trouble("SCAN was not answered as Redis does", ""));
  }
  HealPage page{std::string(TextOf(*answer.element[0])), {}};
  for (std::size_t i = 0; i < answer.element[1]->elements; ++i) {
    page.names.emplace_back(TextOf(*answer.element[1]->element[i]));
  }
  return page;
}

tl::expected<std::vector<bool>, Error> RawNode::Heal(std::string_view sentinel,
                                                     std::span<const HealWrite> writes,
                                                     Millis limit) {
  std::string request;
  FormatHeal(sentinel, writes, request);
  Ask(request, limit);
  return AwaitText().and_then(
      [&](const std::string& text) { return Checked(ParseHeal(text, writes.size())); });
}

tl::expected<std::optional<std::string>, Error> RawNode::Write(const SentinelWrite& write,
                                                               Millis limit) {
  std::string request;
  FormatSentinelWrite(write, request);
  Ask(request, limit);
  return AwaitText()
      .and_then([&](const std::string& text) { return Checked(ParseSentinelWrite(text)); })
      .map([](SentinelAnswer answer) { return std::move(answer.current); });
}

}  // namespace fencepost::locking
