#include "locking/redis/tools/raw_node.h"

#include <hiredis/hiredis.h>

#include <charconv>
#include <functional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "locking/core/store/sentinel.h"
#include "locking/redis/engine/access.h"
#include "locking/redis/session/handshake.h"
#include "locking/redis/session/node_error.h"
#include "locking/redis/tools/heal_wire.h"
#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

constexpr std::string_view kScanned = "fencepost:*";
constexpr std::string_view kScanSize = "512";

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

std::int64_t Number(std::string_view digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace

void RawReplyFree::operator()(redisReply* reply) const { freeReplyObject(reply); }
void RawNode::ReaderFree::operator()(redisReader* reader) const { redisReaderFree(reader); }

RawNode::RawNode(asio::io_context& io, const RedisOptions& redis, std::size_t index)
    : io_(io),
      options_(MakeConnections(redis, LockOptions()).at(index)),
      names_(std::make_shared<NameLookup>(io, options_.look_up)),
      reader_(redisReaderCreate()) {}

RawNode::~RawNode() {
  if (transport_ != nullptr) transport_->Close(false);
}

Error RawNode::Trouble(std::string what, std::string_view hint) const {
  return {"node", std::move(what), options_.address.text, std::string(hint)};
}

// --- bytes
// -----------------------------------------------------------------------------------------

void RawNode::OnOpen() { open_ = true; }

void RawNode::OnBytes(std::string_view bytes) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
  for (;;) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
      broken_ = fmt::format("this is not Redis: {}", reader_->errstr);
      return;
    }
    if (raw == nullptr) return;
    answers_.emplace_back(static_cast<redisReply*>(raw));
  }
}

void RawNode::OnBroken(std::string_view why) { broken_ = why; }

bool RawNode::RunUntil(Millis limit, const std::function<bool()>& there) {
  const Instant end = BootClock::now() + limit;
  while (!there() && broken_.empty()) {
    const Nanos left = end - BootClock::now();
    if (left <= Nanos(0)) return false;
    io_.restart();
    io_.run_one_for(left);
  }
  return there();
}

void RawNode::Ask(std::initializer_list<std::string_view> words) {
  if (transport_ == nullptr) return;
  AppendCommand(words, transport_->out());
  transport_->Flush();
}

tl::expected<RawReply, Error> RawNode::Await(Millis limit) {
  if (!RunUntil(limit, [this] { return !answers_.empty(); })) {
    return tl::unexpected(
        Trouble(broken_.empty() ? fmt::format("no answer in {} ms", limit.count()) : broken_, ""));
  }
  RawReply reply = std::move(answers_.front());
  answers_.erase(answers_.begin());
  if (reply->type != REDIS_REPLY_ERROR) return reply;
  const NodeError error = ReadNodeError(TextOf(*reply));
  return tl::unexpected(Trouble(fmt::format("the node says: {}", error.text), error.hint));
}

tl::expected<std::string, Error> RawNode::AwaitText(Millis limit) {
  auto reply = Await(limit);
  if (!reply) return tl::unexpected(reply.error());
  return (*reply)->type == REDIS_REPLY_NIL ? std::string() : std::string(TextOf(**reply));
}

// --- what is asked
// -----------------------------------------------------------------------------------

tl::expected<void, Error> RawNode::Connect(Millis limit) {
  if (!options_.problem.empty()) return tl::unexpected(Trouble(options_.problem, ""));
  transport_ = std::make_shared<Transport>(io_, options_.tls,
                                           static_cast<Transport::Listener&>(*this), names_);
  transport_->Connect(options_.address);
  if (!RunUntil(limit, [this] { return open_; })) {
    return tl::unexpected(Trouble(broken_.empty() ? "no connection in time" : broken_, ""));
  }
  if (!options_.password.empty()) {
    if (options_.username.empty()) {
      Ask({"AUTH", options_.password});
    } else {
      Ask({"AUTH", options_.username, options_.password});
    }
    if (auto login = Await(limit); !login) return tl::unexpected(login.error());
  }
  for (const Script* script : {&LookScript(), &HealScript(), &SentinelWriteScript()}) {
    Ask({"SCRIPT", "LOAD", script->text});
    if (auto loaded = Await(limit); !loaded) return tl::unexpected(loaded.error());
  }
  return {};
}

tl::expected<RawNode::Info, Error> RawNode::ReadInfo(Millis limit) {
  Info all;
  for (const char* section : {"server", "memory", "replication", "persistence", "keyspace"}) {
    auto fields = ReadInfo(section, limit);
    if (!fields) return fields;
    all.merge(*fields);
  }
  return all;
}

tl::expected<RawNode::Info, Error> RawNode::ReadInfo(std::string_view section, Millis limit) {
  Ask({"INFO", section});
  const auto text = AwaitText(limit);
  if (!text) return tl::unexpected(text.error());
  Info fields;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find("\r\n", at), text->size());
    const std::string line = text->substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos) fields[line.substr(0, colon)] = line.substr(colon + 1);
    at = end + 2;
  }
  return fields;
}

tl::expected<WallTime, Error> RawNode::ReadTime(Millis limit) {
  Ask({"TIME"});
  auto reply = Await(limit);
  if (!reply) return tl::unexpected(reply.error());
  if ((*reply)->type != REDIS_REPLY_ARRAY || (*reply)->elements != 2) {
    return tl::unexpected(Trouble("TIME was not answered as Redis does", ""));
  }
  return WallTime(Millis(Number(TextOf(*(*reply)->element[0])) * 1000 +
                         Number(TextOf(*(*reply)->element[1])) / 1000));
}

tl::expected<std::optional<std::string>, Error> RawNode::ReadSentinel(Millis limit) {
  Ask({"GET", kSentinelKey});
  auto text = AwaitText(limit);
  if (!text) return tl::unexpected(text.error());
  return text->empty() ? std::nullopt : std::optional(std::move(*text));
}

void RawNode::AskLook(std::span<const std::string> names) {
  if (transport_ == nullptr) return;
  FormatLook(names, transport_->out());
  transport_->Flush();
}

tl::expected<NodeSight, Error> RawNode::AwaitLook(std::size_t names, Millis limit) {
  const auto text = AwaitText(limit);
  if (!text) return tl::unexpected(text.error());
  auto sight = ParseLook(*text, names);
  if (!sight) return tl::unexpected(Trouble(sight.error(), ""));
  return std::move(*sight);
}

tl::expected<HealPage, Error> RawNode::Scan(const std::string& cursor, Millis limit) {
  Ask({"SCAN", cursor, "MATCH", kScanned, "COUNT", kScanSize});
  auto reply = Await(limit);
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
  if (transport_ != nullptr) {
    FormatHeal(sentinel, writes, transport_->out());
    transport_->Flush();
  }
  const auto text = AwaitText(limit);
  if (!text) return tl::unexpected(text.error());
  auto written = ParseHeal(*text, writes.size());
  if (!written) return tl::unexpected(Trouble(written.error(), ""));
  return std::move(*written);
}

tl::expected<std::optional<std::string>, Error> RawNode::Write(const SentinelWrite& write,
                                                               Millis limit) {
  if (transport_ != nullptr) {
    FormatSentinelWrite(write, transport_->out());
    transport_->Flush();
  }
  const auto text = AwaitText(limit);
  if (!text) return tl::unexpected(text.error());
  auto answer = ParseSentinelWrite(*text);
  if (!answer) return tl::unexpected(Trouble(answer.error(), ""));
  return std::move(answer->current);
}

}  // namespace fencepost::locking
