// Arrays, and types whose texts PostgreSQL reads.
#include "tests/component/values/values.h"

namespace fencepost::consumer {

VALUES(
    Arrays,
    {
        {"integers", "[1, 2.0, null, 3e1]", "", {{"postgres integer[]", "{1,2,NULL,30}"}}},
        {"arrays of arrays", "[[1,2],[3,4]]", "", {{"postgres integer[]", "{{1,2},{3,4}}"}}},
        {"no elements", "[]", "", {{"postgres integer[]", "{}"}}},
        {"texts",
         R"(["a b","q\"\\\u00e9\ud83d\ude00","",null,"NULL","{,}"])",
         "",
         {{"postgres text[]", "{\"a b\",\"q\\\"\\\\é😀\",\"\",NULL,\"NULL\",\"{,}\"}"}}},
        {"objects as texts",
         R"([{"a":"]"},2,true])",
         "",
         {{"postgres text[]", R"({"{\"a\":\"]\"}",2,true})"}}},
        {"documents",
         R"(["s",1,{"a":2}])",
         "",
         {{"postgres jsonb[]", R"({"\"s\"",1,"{\"a\": 2}"})"}}},
        {"documents of a domain", R"(["123"])", "", {{"postgres doc[]", R"({"\"123\""})"}}},
        {"an element with a fraction",
         "[1.5]",
         "",
         {{"postgres integer[]", "! has an element that is not a whole number"}}},
        {"an element out of range",
         "[32768]",
         "",
         {{"postgres smallint[]", "! has an element that is a number out of the type's range"}}},
        {"an array as PostgreSQL writes it", R"("{1,2}")", "", {{"postgres integer[]", "{1,2}"}}},
        {"a text that is no array",
         R"("s3cret")",
         "",
         {{"postgres integer[]", "! malformed array literal"}}},
        {"an array as text", "[1, 2]", "", {{"postgres mysql text", "[1, 2]"}}},
    });

// One text, and a type that does not take it.
ValueRow Refused(const std::string& type, const std::string& text, const std::string& why) {
  return {"no " + type + " " + text, "\"" + text + "\"", "", {{"postgres " + type, "! " + why}}};
}
VALUES(ReadByPostgres,
       {
           {"a uuid",
            R"("6ba7b810-9dad-11d1-80b4-00c04fd430c8")",
            "",
            {{"postgres uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}}},
           {"a constant", "1", "", {{"postgres mysql integer", "12"}}, "=12"},
           {"a token", "1", "", {{"postgres mysql bigint", "1"}}, "token"},
           {"a domain", R"("four")", "", {{"postgres short", "four"}}},
           Refused("uuid", "s3cret",
                   "column v (uuid) from json:/v: invalid input syntax for type uuid"),
           Refused("tsquery", "a & & b", "SQLSTATE 42601"),
           Refused("tsvector", "a 'b", "SQLSTATE 42601"),
           Refused("jsonpath", "$.(", "SQLSTATE 42601"),
           Refused("regclass", "no_such_table", "SQLSTATE 42P01"),
           Refused("regtype", "nix", "SQLSTATE 42704"),
           Refused("regprocedure", "nix()", "SQLSTATE 42883"),
           Refused("int4range", "[2,1)", "SQLSTATE 22000"),
           Refused("inet", "x", "SQLSTATE 22P02"),
           Refused("bit(3)", "1011", "SQLSTATE 22026"),
           Refused("point", "(1", "SQLSTATE 22P02"),
           Refused("boolean", "s3cret", "SQLSTATE 22P02"),
       });

}  // namespace fencepost::consumer
