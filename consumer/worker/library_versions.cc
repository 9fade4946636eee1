#include "consumer/worker/library_versions.h"

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"

namespace fencepost::consumer {

std::vector<std::pair<std::string, std::string>> LibraryVersions() {
  return {{"librdkafka", KafkaClientVersion()},
          {"libpq", PostgresClientVersion()},
          {"libmariadb", MysqlClientVersion()},
          {"sqlite", SqliteVersion()},
          {"libcurl", curl::Version()}};
}

}  // namespace fencepost::consumer
