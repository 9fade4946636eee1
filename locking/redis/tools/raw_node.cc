#include "locking/redis/tools/raw_node.h"

#include <hiredis/hiredis.h>

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/redis/engine/access.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

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

NodeSession::Step RawNode::OnStep(NodeSession::Step step) {
  using Step = NodeSession::Step;
  NodeSession& session = pump_->session();
  const Instant now = pump_->now().boot;
  switch (step) {
    case Step::kReply:
      reply_ = session.KeepReply();
      break;
    case Step::kPrepared:
      session.Up(now);
      [[fallthrough]];
    case Step::kAnswered:
      session.EndTurn();
      answered_ = true;
      break;
    case Step::kStalled:
      return session.Fail(
          {CommandError::kTimeout, fmt::format("no answer in {} ms", limit_.count()), ""}, now);
    case Step::kClose:
      lost_ = Trouble(session.failure().what, session.failure().hint);
      break;
    default:  // the pump's own
      break;
  }
  return Step::kWait;
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

// --- what is asked -------------------------------------------------------------------------------

tl::expected<void, Error> RawNode::Connect(Millis limit) {
  SessionOptions session = options_.Session();
  session.scripts = AllScripts().first(1);  // so that it has to answer
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
  return AwaitReply().map([](const ReplyPtr& reply) { return FieldsOf(TextOf(*reply)); });
}

}  // namespace fencepost::locking
