// The forms of single texts in the schema. Each gives an empty string, or a predicate: "is not …".
#pragma once

#include <string>
#include <string_view>

namespace fencepost::config {

std::string CheckNotEmpty(std::string_view text);
std::string CheckPipelineName(std::string_view text);
std::string CheckTopic(std::string_view text);
std::string CheckTopicOrPattern(std::string_view text);
std::string CheckHostPort(std::string_view text);       // a port from 1 on
std::string CheckBroker(std::string_view text);         // HOST:PORT, or with a protocol before it
std::string CheckListenAddress(std::string_view text);  // port 0 too
std::string CheckHost(std::string_view text);           // or /PATH of a Unix socket
std::string CheckLockNode(std::string_view text);       // HOST:PORT, unix:/PATH or a URL
std::string CheckDsn(std::string_view text);
// NAME or SCHEMA.NAME, quoted or not: all that the database takes where it is quoted.
std::string CheckPostgresTable(std::string_view text);
std::string CheckMysqlTable(std::string_view text);
std::string CheckSqliteTable(std::string_view text);
std::string CheckPostgresColumn(std::string_view text);
std::string CheckMysqlColumn(std::string_view text);
std::string CheckSqliteColumn(std::string_view text);
std::string CheckHttpUrl(std::string_view text);
std::string CheckCollectorUrl(std::string_view text);  // such a URL, whose path may be a secret
std::string CheckHttpTemplate(std::string_view text);  // a url with selectors in braces
std::string WithoutSelectors(const std::string& url);  // with x in their places
std::string CheckHttpHeader(std::string_view text);    // the name of one (RFC 9110)
std::string CheckBasicUser(std::string_view text);
std::string CheckBearer(std::string_view text);
std::string CheckRegion(std::string_view text);      // of AWS; it becomes part of a host's name
std::string CheckOpenPath(std::string_view text);    // of the HTTP port: live or ready
std::string CheckStatus(std::string_view text);      // 404 or 4xx
std::string CheckErrorClass(std::string_view text);  // a status, or a word
std::string CheckWord(std::string_view text);        // a-z and _
std::string CheckPart(std::string_view text);        // the pointer (RFC 6901) of a part of a value

// Of SASL_SSL://HOST:PORT: SASL_SSL, also where it is in small letters. Empty: there is none.
std::string_view BrokerProtocol(std::string_view text);

// A text of this form, good or bad, as messages may print it: in an address, what can be
// user:password is "***".
std::string Redacted(std::string (*check)(std::string_view), const std::string& text);

}  // namespace fencepost::config
