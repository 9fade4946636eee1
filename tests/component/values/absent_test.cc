// What is not there, and what stands for an unchanged value.
#include "tests/component/values/values.h"

namespace fencepost::consumer {

// Of new rows; those that are updated: component/outputs/omitted_test.cc.
VALUES(Absent,
       {{.name = "nothing with ? is null",
         .v = "1",
         .cells = {{"postgres mysql sqlite int DEFAULT 7", "NULL"}},
         .from = "json:/w?"},
        {.name = "nothing with ?default is the column's default",
         .v = "1",
         .cells = {{"postgres mysql sqlite int DEFAULT 7", "7"},
                   {"postgres int", "NULL"},
                   {"postgres mood DEFAULT 'sad'", "sad"},
                   {"postgres timestamp DEFAULT timestamp '2026-01-02'", "2026-01-02 00:00:00"},
                   {"postgres jsonb DEFAULT '{\"a\": 1}'", "{\"a\": 1}"},
                   {"postgres bytea DEFAULT '\\x01'", "\\x01"},
                   {"postgres int[] DEFAULT '{1,2}'", "{1,2}"}},
         .from = "json:/w?default"},
        {.name = "a JSON null with ?default is null",
         .v = "null",
         .cells = {{"postgres mysql sqlite int DEFAULT 7", "NULL"}},
         .from = "json:/v?default"},
        {.name = "a header that is not there with ?default is the default",
         .v = "1",
         .cells = {{"postgres mysql sqlite int DEFAULT 7", "7"}},
         .from = "header:w?default"},
        {.name = "a value that is there with ?default is that value",
         .v = "5",
         .cells = {{"postgres mysql sqlite int DEFAULT 7", "5"}},
         .from = "json:/v?default"},
        {.name = "a text to keep is the default of a new row",
         .v = "\"__debezium_unavailable_value\"",
         .cells = {{"postgres text DEFAULT 'd'", "d"},
                   {"postgres jsonb DEFAULT '[]'", "[]"},
                   {"postgres bytea DEFAULT '\\x02'", "\\x02"},
                   {"postgres int DEFAULT 7", "7"},
                   {"mysql varchar(20) DEFAULT 'd'", "d"},
                   {"sqlite text DEFAULT 'd'", "'d'"}},
         .also = "keep: [__debezium_unavailable_value]\n"},
        {.name = "a text to keep within another is that text",
         .v = "\"x __debezium_unavailable_value\"",
         .cells = {{"postgres text DEFAULT 'd'", "x __debezium_unavailable_value"}},
         .also = "keep: [__debezium_unavailable_value]\n"}});

}  // namespace fencepost::consumer
