// A jq program as a handler (libjq): the record's value in, each result a value out, as compact
// JSON (null: a null value; no result: no row). The program sees $record_id, $topic, $partition,
// $offset, $key and $headers; a null value is `null`. A value that is not JSON, and a result that
// depends on a number that a double cannot hold, is a failure of class "bad_record"; an error in
// the program one of class "jq"; neither is tried again. Each thread has its own. A stop is seen
// between two results only: libjq 1.6 cannot be interrupted, so a program that loops for ever holds
// its thread for ever.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/handler.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class JqHandler : public Handler {
 public:
  // Error: the program, which is that of the key `where`, does not compile; one line in jq's words.
  // Any thread.
  static tl::expected<std::unique_ptr<Handler>, Error> Make(const std::string& program,
                                                            std::string_view where = "handler.jq");
  ~JqHandler() override;
  JqHandler(const JqHandler&) = delete;
  JqHandler& operator=(const JqHandler&) = delete;

  HandlerResult Handle(const HandlerRequest& request, const std::stop_token& stop) override;

 private:
  struct Jq;  // libjq's state
  static void WarmUp();
  static tl::expected<std::unique_ptr<Handler>, Error> Compile(const std::string& program,
                                                               std::string_view where);

  JqHandler(std::unique_ptr<Jq> jq, std::string program, std::vector<std::string_view> variables);
  // `now`: what the program's `now` is, in seconds since 1970.
  HandlerResult Run(std::string_view value, const HandlerRequest& request, double now,
                    const std::stop_token& stop);
  HandlerResult Results(const std::stop_token& stop);
  HandlerResult AtTheEnd(HandlerValues values, std::string error);

  std::unique_ptr<Jq> jq_;
  const std::string program_;                      // as it is compiled
  const std::vector<std::string_view> variables_;  // those that it mentions, in their order
};

}  // namespace fencepost::consumer
