#include "base/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"
#include "definition/expression.h"

#define NO_JQ 1 /* jq 1.6 sees it otherwise, or has it not */

/* What an expression gives; where the result begins with "!", the rest is what the failure says. */
/* clang-format off */
static const struct expression_case {
    const char *text, *input, *result;
    int flags;
} cases[] = {
    /* paths */
    {".", "{\"a\":1}", "{\"a\":1}", 0},
    {".a", "{\"a\":1}", "1", 0},
    {".a.b.c", "{\"a\":{\"b\":{\"c\":[1]}}}", "[1]", 0},
    {".a.b.c", "{}", "null", 0},
    {".a", "null", "null", 0},
    {".a", "1", "!cannot index number with \"a\"", 0},
    {".a", "[1]", "!cannot index array with \"a\"", 0},
    {".a", "\"x\"", "!cannot index string", 0},
    {".a", "true", "!cannot index boolean", 0},
    {".\"a b\"", "{\"a b\":2}", "2", 0},
    {".[\"a b\"]", "{\"a b\":2}", "2", 0},
    {".a[\"x-y\"].z", "{\"a\":{\"x-y\":{\"z\":3}}}", "3", 0},
    {".a.\"b\".\"c d\"", "{\"a\":{\"b\":{\"c d\":4}}}", "4", 0},
    {".[\"a\",\"b\"] // 0 | [., 1]", "{\"a\":5}", "[5,1]", NO_JQ},
    {"[.[\"a\",\"b\"]]", "{\"a\":5,\"b\":6}", "[5,6]", 0},
    {".[.k]", "{\"k\":\"v\",\"v\":7}", "7", 0},
    {".a.[\"b\"]", "{\"a\":{\"b\":1}}", "1", NO_JQ},
    {".and.or.if", "{\"and\":{\"or\":{\"if\":1}}}", "1", 0},
    {"._a1", "{\"_a1\":1}", "1", 0},
    {".[0]", "[5,6]", "5", 0},
    {".[1]", "[5,6]", "6", 0},
    {".[2]", "[5,6]", "null", 0},
    {".[-1]", "[5,6]", "6", 0},
    {".[-2]", "[5,6]", "5", 0},
    {".[-3]", "[5,6]", "null", 0},
    {".[1.5]", "[5,6]", "null", 0},
    {".[0][1]", "[[1,2]]", "2", 0},
    {".[0]", "null", "null", 0},
    {".[0]", "{}", "!cannot index object with number", 0},
    {".[null]", "[1]", "!cannot index array with null", 0},
    {"[.[]]", "[1,2]", "[1,2]", 0},
    {"[.[]]", "{\"a\":1,\"b\":2}", "[1,2]", 0},
    {"[.[].a]", "[{\"a\":1},{\"a\":2}]", "[1,2]", 0},
    {".[]", "null", "!cannot iterate over null", 0},
    {".[]", "1", "!cannot iterate over number (1)", 0},
    {".[1:]", "[1,2,3]", "[2,3]", 0},
    {".[:2]", "[1,2,3]", "[1,2]", 0},
    {".[1:2]", "[1,2,3]", "[2]", 0},
    {".[-2:]", "[1,2,3]", "[2,3]", 0},
    {".[:-1]", "[1,2,3]", "[1,2]", 0},
    {".[2:1]", "[1,2,3]", "[]", 0},
    {".[1.2:2.5]", "[1,2,3]", "[2,3]", 0},
    {".[null:2]", "[1,2,3]", "[1,2]", 0},
    {".[5:9]", "[1,2,3]", "[]", 0},
    {".[1:]", "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", 0},
    {".[1:3]", "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xc3\xa9\xe2\x82\xac\"", 0},
    {".[-1:]", "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xf0\x9f\x98\x80\"", 0},
    {".[1:]", "null", "null", 0},
    {".[1:]", "{}", "!cannot take a slice of object", 0},
    {".[\"a\":]", "[1]", "!must be numbers", 0},
    {"[1,2,3][1:][0]", "null", "2", 0},
    {"{\"a\":1}.a", "null", "1", 0},
    {"\"abc\"[1:2]", "null", "\"b\"", 0},
    /* question marks */
    {"[.a?]", "1", "[]", 0},
    {"[.[]?]", "1", "[]", 0},
    {"[.[0]?]", "\"x\"", "[]", 0},
    {"[.[1:]?]", "1", "[]", 0},
    {"[.a.b?]", "1", "!cannot index number", 0},
    {"[.a?.b]", "1", "[]", 0},
    {"[(.a.b)?]", "1", "[]", 0},
    {"[(1,error(\"x\"),2)?]", "null", "[1]", 0},
    {"[.[] | tonumber?]", "[\"1\",\"x\",\"2\"]", "[1,2]", 0},
    {"[(1?)|error(\"x\")]", "null", "!x", NO_JQ},
    {"[((1?)|error(\"x\"))?]", "null", "[]", 0},
    {"[((.[]?)?) | error(\"x\")]", "[1]", "!x", NO_JQ},
    {"[.a??]", "1", "[]", 0},
    /* literals */
    {"1", "null", "1", 0},
    {"-1", "null", "-1", 0},
    {"1.5e3", "null", "1.5e3", 0},
    {"0", "null", "0", 0},
    {"\"x\"", "null", "\"x\"", 0},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", "null",
     "\"\\\"\\\\/\\b\\f\\n\\r\\t\xc3\xa9\xf0\x9f\x98\x80\"", 0},
    {"[null,true,false]", "null", "[null,true,false]", 0},
    {"\"\"", "null", "\"\"", 0},
    {"\"a\\(1+1)b\"", "null", "\"a2b\"", 0},
    {"\"\\(.a) and \\(.b)\"", "{\"a\":\"x\",\"b\":[1, 2]}", "\"x and [1,2]\"", 0},
    {"\"\\(\"in\\(1)ner\")!\"", "null", "\"in1ner!\"", 0},
    {"[\"\\(1,2)-\\(3,4)\"]", "null", "[\"1-3\",\"2-3\",\"1-4\",\"2-4\"]", 0},
    {"\"\\(null)\\(true)\\({\"a\":1})\"", "null", "\"nulltrue{\\\"a\\\":1}\"", 0},
    /* construction */
    {"[]", "null", "[]", 0},
    {"[1,2,[3]]", "null", "[1,2,[3]]", 0},
    {"[.[]|.+1]", "[1,2]", "[2,3]", 0},
    {"{}", "null", "{}", 0},
    {"{a:1,\"b\":2,\"c d\":3}", "null", "{\"a\":1,\"b\":2,\"c d\":3}", 0},
    {"{a}", "{\"a\":1,\"b\":2}", "{\"a\":1}", 0},
    {"{\"a b\"}", "{\"a b\":1}", "{\"a b\":1}", 0},
    {"{(.k):.v}", "{\"k\":\"x\",\"v\":1}", "{\"x\":1}", 0},
    {"{(\"a\",\"b\"):1}|keys", "null", "!several", NO_JQ},
    {"[{(\"a\",\"b\"):(1,2)}]", "null", "[{\"a\":1},{\"a\":2},{\"b\":1},{\"b\":2}]", 0},
    {"[{a:(1,2),b:(3,4)}]", "null", "[{\"a\":1,\"b\":3},{\"a\":1,\"b\":4},{\"a\":2,\"b\":3},{\"a\":2,\"b\":4}]", 0},
    {"{(.a):1}", "{\"a\":1}", "!cannot use number (1) as object key", 0},
    {"{a:1,a:2}", "null", "{\"a\":2}", 0},
    {"{a:.x|.y}", "{\"x\":{\"y\":1}}", "{\"a\":1}", 0},
    {"{a:1+2,b:.x//3}", "{}", "{\"a\":3,\"b\":3}", NO_JQ},
    {"{if:1,and:2}", "null", "{\"if\":1,\"and\":2}", 0},
    {"{\"x\\(1+1)\":3}", "null", "{\"x2\":3}", 0},
    {"{a:{b:[1,{c:2}]}}", "null", "{\"a\":{\"b\":[1,{\"c\":2}]}}", 0},
    {"{a:.a[],b:1}|.a", "{\"a\":[7]}", "7", 0},
    /* comma, pipe, parentheses */
    {"[1,2|.+1]", "null", "[2,3]", 0},
    {"[1,(2|.,.)]", "null", "[1,2,2]", 0},
    {"[(1,2),(3,4)]", "null", "[1,2,3,4]", 0},
    {".a|.b|.c", "{\"a\":{\"b\":{\"c\":1}}}", "1", 0},
    {"(1+2)*3", "null", "9", 0},
    {"((((1))))", "null", "1", 0},
    {"1,2", "null", "!several", NO_JQ},
    {"empty", "null", "!no value", NO_JQ},
    {"[empty]", "null", "[]", 0},
    {"[1,empty,2]", "null", "[1,2]", 0},
    /* alternatives */
    {".a // 1", "{}", "1", 0},
    {".a // 1", "{\"a\":false}", "1", 0},
    {".a // 1", "{\"a\":0}", "0", 0},
    {"[(1,null,2) // 3]", "null", "[1,2]", 0},
    {"[(null,false) // (3,4)]", "null", "[3,4]", 0},
    {"null // null // 3", "null", "3", 0},
    {"empty // 1", "null", "1", 0},
    {"[false // false]", "null", "[false]", 0},
    {".a.b // 1", "{\"a\":5}", "!cannot index number", 0},
    {".a // .b // \"c\"", "{\"b\":\"x\"}", "\"x\"", 0},
    /* logic */
    {"[true and true, true and false, false and error(\"x\")]", "null", "[true,false,false]", 0},
    {"[false or false, true or error(\"x\"), null or 1]", "null", "[false,true,true]", 0},
    {"[(true,false) and (true,false)]", "null", "[true,false,false]", 0},
    {"[(true,false) or (true,false)]", "null", "[true,true,false]", 0},
    {"true or false and false", "null", "true", 0},
    {"[.[]|not]", "[null,false,true,0,\"\",[]]", "[true,true,false,false,false,false]", 0},
    {"1 == 1 and 2 > 1", "null", "true", 0},
    /* comparison */
    {"[1==1.0, 1!=2, \"a\"<\"b\", \"a\"<=\"a\", 2>1, 2>=3]", "null", "[true,true,true,true,true,false]", 0},
    {"[null<false, false<true, true<0, 0<\"\", \"\"<[], []<{}]", "null", "[true,true,true,true,true,true]", 0},
    {"[1,2]<[1,3]", "null", "true", 0},
    {"[1]<[1,0]", "null", "true", 0},
    {"{a:1,b:2}=={b:2,a:1}", "null", "true", 0},
    {"{a:2}<{b:1}", "null", "true", 0},
    {"{a:1,b:2}<{a:1,c:0}", "null", "true", 0},
    {"{a:1}<{a:1,b:0}", "null", "true", 0},
    {"{a:{b:1}}<{a:{b:2}}", "null", "true", 0},
    {"\"\xc3\xa9\" > \"z\"", "null", "true", 0},
    {"\"ab\" > \"a\"", "null", "true", 0},
    {"9007199254740993 == 9007199254740992", "null", "false", NO_JQ},
    {"9007199254740993 > 9007199254740992.0", "null", "true", NO_JQ},
    {"123456789012345678901234567890 < 123456789012345678901234567891", "null", "true", NO_JQ},
    {"-123456789012345678901234567890 < 1", "null", "true", 0},
    {"1e400 > 1", "null", "true", 0},
    {"[.[] | . == 1]", "[1,1.0,1e0,10e-1,\"1\"]", "[true,true,true,true,false]", 0},
    /* arithmetic */
    {"1+2*3-4/2", "null", "5", 0},
    {"10-2-3", "null", "5", 0},
    {"100/10/2", "null", "5", 0},
    {"7/2", "null", "3.5", 0},
    {"1/3", "null", "0.3333333333333333", 0},
    {"0.1+0.2", "null", "0.30000000000000004", 0},
    {"1.5*2", "null", "3", 0},
    {"[1e17+0.0,1e-5+0,0.0001+0,1e16+0.0,1e15+0.5,1.5e16+0]", "null",
     "[1e+17,1e-05,0.0001,1e+16,1000000000000000.5,15000000000000000]", 0},
    {"[5e-324/1,1.5e300*1,123456789.123*1000,2.5e-7+0]", "null", "[5e-324,1.5e+300,123456789123,2.5e-07]", 0},
    {"0.0 * -1", "null", "0", 0},
    {"[5%3,-5%3,5%-3,5.9%2.1,-5 % -3]", "null", "[2,-2,2,1,-2]", 0},
    {"9007199254740993+0", "null", "9007199254740993", NO_JQ},
    {"9223372036854775806+1", "null", "9223372036854775807", NO_JQ},
    {"9223372036854775807+1", "null", "!does not fit 64 bits", NO_JQ},
    {"-9223372036854775808-1", "null", "!does not fit 64 bits", NO_JQ},
    {"-9223372036854775808", "null", "-9223372036854775808", NO_JQ},
    {"[-1, - 1, -(-1), - -1]", "null", "[-1,-1,1,1]", 0},
    {"-(9223372036854775807+0)-2", "null", "!does not fit 64 bits", NO_JQ},
    {".*.", "3037000500", "!does not fit 64 bits", NO_JQ},
    {"-.", "-9223372036854775808", "!does not fit 64 bits", NO_JQ},
    {"./-1", "-9223372036854775808", "9223372036854776000", NO_JQ},
    {".%-1", "-9223372036854775808", "0", NO_JQ},
    {".+1", "12345678901234567890", "!too large to calculate with", NO_JQ},
    {".", "12345678901234567890", "12345678901234567890", NO_JQ},
    {".a", "{\"a\":1.000}", "1.000", 0},
    {".+1", "1e400", "!too large", NO_JQ},
    {"1e308*10", "null", "!too large", NO_JQ},
    {"1/.", "0", "!division by zero", 0},
    {"1%.", "0", "!division by zero", 0},
    {"1%.", "0.5", "!division by zero", 0},
    {"-(1,2)|[.]", "null", "!several", NO_JQ},
    {"[-(1,2)]", "null", "[-1,-2]", 0},
    {"[-1 + 2 * -3, 1 - -1, 2*-3*2]", "null", "[-7,2,-12]", 0},
    {"-.a", "{\"a\":5}", "-5", 0},
    {"-\"a\"", "null", "!string (\"a\") cannot be negated", 0},
    {"[(1,2)+(10,20)]", "null", "[11,12,21,22]", 0},
    {"\"a\"+\"b\"", "null", "\"ab\"", 0},
    {"[null+1, 1+null, null+null, \"a\"+null]", "null", "[1,1,null,\"a\"]", 0},
    {"[1]+[2,3]", "null", "[1,2,3]", 0},
    {"{a:1,b:1}+{b:2,c:3}", "null", "{\"a\":1,\"b\":2,\"c\":3}", 0},
    {"1+\"a\"", "null", "!number (1) and string (\"a\") cannot be added", 0},
    {"true+true", "null", "!boolean (true) and boolean (true) cannot be added", 0},
    {"{}+[]", "null", "!object ({}) and array ([]) cannot be added", 0},
    {"[1,2,2,3]-[2]", "null", "[1,3]", 0},
    {"[1,[2],{a:1}]-[[2],{a:1}]", "null", "[1]", 0},
    {"1-null", "null", "!number (1) and null cannot be subtracted", 0},
    {"{}-{}", "null", "!cannot be subtracted", 0},
    {"[\"ab\"*3, 2*\"x\", \"x\"*0, \"x\"*-1, \"x\"*0.5, \"x\"*1.5]", "null",
     "[\"ababab\",\"xx\",null,null,\"x\",\"x\"]", 0},
    {"{a:{b:1,c:1}}*{a:{b:2,d:3},e:4}", "null", "{\"a\":{\"b\":2,\"c\":1,\"d\":3},\"e\":4}", 0},
    {"{a:1}*{a:{b:1}}*{a:{c:2}}", "null", "{\"a\":{\"b\":1,\"c\":2}}", 0},
    {"[]*2", "null", "!cannot be multiplied", 0},
    {"\"a,b,,c\"/\",\"", "null", "[\"a\",\"b\",\"\",\"c\"]", 0},
    {"[]/1", "null", "!cannot be divided", 0},
    {"{}%1", "null", "!cannot be divided", 0},
    /* if */
    {"if . then 1 else 2 end", "true", "1", 0},
    {"if . then 1 else 2 end", "null", "2", 0},
    {"if . == 1 then \"a\" elif . == 2 then \"b\" else \"c\" end", "2", "\"b\"", 0},
    {"if . == 1 then \"a\" elif . == 2 then \"b\" else \"c\" end", "3", "\"c\"", 0},
    {"[if (true,false) then 1 else 2 end]", "null", "[1,2]", 0},
    {"[if empty then 1 else 2 end]", "null", "[]", 0},
    {"if 0 then \"yes\" else \"no\" end", "null", "\"yes\"", 0},
    {"[.[] | if . > 1 then . else empty end]", "[1,2,3]", "[2,3]", 0},
    /* functions */
    {"[.[]|length]", "[null,-5,\"a\xc3\xa9\",[1,2],{\"a\":1},2.5,-2.5]", "[0,5,2,2,1,2.5,2.5]", 0},
    {"length", "true", "!boolean (true) has no length", 0},
    {"add", "[1,2,3]", "6", 0},
    {"add", "[]", "null", 0},
    {"add", "[\"a\",\"b\",\"c\"]", "\"abc\"", 0},
    {"add", "[[1],[2,3],[]]", "[1,2,3]", 0},
    {"add", "[{\"a\":1},{\"b\":2},{\"a\":3}]", "{\"a\":3,\"b\":2}", 0},
    {"add", "[null,1,null]", "1", 0},
    {"add", "{\"a\":1,\"b\":2}", "3", 0},
    {"add", "[1,\"a\"]", "!cannot be added", 0},
    {"add", "1", "!cannot iterate", 0},
    {"add/length", "[1,2]", "1.5", 0},
    {"[has(\"a\",\"b\")]", "{\"a\":null}", "[true,false]", 0},
    {"[has(0,1,-1)]", "[1]", "[true,false,false]", 0},
    {"has(\"a\")", "null", "false", 0},
    {"has(\"a\")", "\"a\"", "!cannot check whether string has a string key", 0},
    {"has(0)", "{}", "!cannot check whether object has a number key", 0},
    {"keys", "{\"b\":1,\"a\":2}", "[\"a\",\"b\"]", 0},
    {"keys", "[7,8]", "[0,1]", 0},
    {"keys", "null", "!null has no keys", 0},
    {"[.[]|values]", "[1,null,false]", "[1,false]", 0},
    {"map(.+1)", "[1,2]", "[2,3]", 0},
    {"map(.,.)", "[1,2]", "[1,1,2,2]", 0},
    {"map(.+1)", "{\"a\":1}", "[2]", 0},
    {"map(1)", "null", "!cannot iterate over null", 0},
    {"map(select(. > 1))", "[1,2,3]", "[2,3]", 0},
    {"map(select(.>1,.>0))", "[1,2]", "[1,2,2]", 0},
    {"[.[] | select(.a == 1) | .b]", "[{\"a\":1,\"b\":2},{\"a\":2}]", "[2]", 0},
    {"[.[]|tostring]", "[1,\"a\",null,true,[1, 2],{\"a\": \"\\u00e9\\u0001/\"}]",
     "[\"1\",\"a\",\"null\",\"true\",\"[1,2]\",\"{\\\"a\\\":\\\"\xc3\xa9\\\\u0001/\\\"}\"]", 0},
    {"1.0|tostring", "null", "\"1.0\"", NO_JQ},
    {"[.[]|tonumber]", "[1,\"1\",\"-2.5\",\"1e2\",\" 3 \"]", "[1,1,-2.5,100,3]", 0},
    {"tonumber", "\"abc\"", "!cannot be parsed as a number", 0},
    {"tonumber", "\"\"", "!cannot be parsed as a number", 0},
    {"tonumber", "\"0x10\"", "!cannot be parsed as a number", 0},
    {"tonumber", "null", "!null cannot be parsed as a number", 0},
    {"[.[]|type]", "[null,true,1,\"a\",[],{}]", "[\"null\",\"boolean\",\"number\",\"string\",\"array\",\"object\"]", 0},
    {"[min,max]", "[3,1,2]", "[1,3]", 0},
    {"[min,max]", "[]", "[null,null]", 0},
    {"max", "[3,[1],{\"a\":1},null]", "{\"a\":1}", 0},
    {"min", "1", "!is not an array", 0},
    {"sort", "[1,\"a\",null,true,false,{\"a\":1},[0]]", "[null,false,true,1,\"a\",[0],{\"a\":1}]", 0},
    {"sort", "[{\"a\":2},{\"a\":1},{\"A\":3}]", "[{\"A\":3},{\"a\":1},{\"a\":2}]", 0},
    {"sort", "{}", "!cannot be sorted", 0},
    {"unique", "[3,1,2,1,3,1.0]", "[1,2,3]", 0},
    {"join(\",\")", "[\"a\",\"b\"]", "\"a,b\"", 0},
    {"join(\", \")", "[1,null,\"a\",true]", "\"1, , a, true\"", 0},
    {"join(\",\")", "[]", "\"\"", 0},
    {"join(\"-\")", "{\"a\":\"x\",\"b\":\"y\"}", "\"x-y\"", 0},
    {"join(\",\")", "[[1]]", "!cannot be joined", 0},
    {"[join(\"-\",\"+\")]", "[\"a\",\"b\"]", "[\"a-b\",\"a+b\"]", 0},
    {"split(\",\")", "\"a,b,,\"", "[\"a\",\"b\",\"\",\"\"]", 0},
    {"split(\"bc\")", "\"abcabc\"", "[\"a\",\"a\",\"\"]", 0},
    {"split(\"\")", "\"a\xc3\xa9z\"", "[\"a\",\"\xc3\xa9\",\"z\"]", 0},
    {"split(\",\")", "\"\"", "[]", 0},
    {"split(1)", "\"a\"", "!must be strings", 0},
    {"[ascii_downcase,ascii_upcase]", "\"aB\xc3\x89z[\"", "[\"ab\xc3\x89z[\",\"AB\xc3\x89Z[\"]", 0},
    {"ascii_upcase", "1", "!is not a string", 0},
    {"[startswith(\"ab\"),endswith(\"bc\"),startswith(\"b\"),endswith(\"abcd\")]", "\"abc\"", "[true,true,false,false]", 0},
    {"startswith(1)", "\"a\"", "!startswith() requires string inputs", 0},
    {"endswith(\"a\")", "1", "!endswith() requires string inputs", 0},
    {"[contains(\"b\"),contains(\"x\"),contains(\"\")]", "\"abc\"", "[true,false,true]", 0},
    {"contains([\"bar\"])", "[\"foobar\",1]", "true", 0},
    {"contains([[2]])", "[1,[2,3]]", "true", 0},
    {"contains({a:[{b:2}]})", "{\"a\":[1,{\"b\":2}],\"c\":3}", "true", 0},
    {"contains({b:null})", "{\"a\":1}", "false", 0},
    {"contains({a:null})", "{\"a\":null}", "true", 0},
    {"contains(1)", "1", "true", 0},
    {"contains([\"a\"])", "\"a\"", "!cannot have their containment checked", 0},
    {"to_entries", "{\"b\":1,\"a\":2}", "[{\"key\":\"b\",\"value\":1},{\"key\":\"a\",\"value\":2}]", 0},
    {"to_entries", "1", "!has no keys", 0},
    {"from_entries", "[{\"key\":\"a\",\"value\":1},{\"name\":\"b\",\"value\":false},{\"key\":\"c\",\"Value\":2}]",
     "{\"a\":1,\"b\":false,\"c\":2}", 0},
    {"from_entries", "[]", "{}", 0},
    {"from_entries", "[{\"key\":1}]", "!cannot be used as object key", 0},
    {"from_entries", "[{\"value\":1}]", "!cannot be used as object key", 0},
    {"with_entries({key:(.key+\"x\"),value:(.value+1)})", "{\"a\":1}", "{\"ax\":2}", 0},
    {"with_entries(select(.value > 1))", "{\"a\":1,\"b\":2}", "{\"b\":2}", 0},
    {"[.[]|floor]", "[1.5,-1.5,2,1e300]", "[1,-2,2,1e300]", 0},
    {"[.[]|ceil]", "[1.5,-1.5,2]", "[2,-1,2]", 0},
    {"[.[]|round]", "[1.5,-1.5,2.4]", "[2,-2,2]", 0},
    {"floor", "\"x\"", "!string (\"x\") is not a number", 0},
    {"[any,all]", "[true,false]", "[true,false]", 0},
    {"[any,all]", "[]", "[false,true]", 0},
    {"[any,all]", "{\"a\":1,\"b\":true}", "[true,true]", 0},
    {"[any(. == 0), all(. > 1)]", "[0,false]", "[true,false]", 0},
    {"[any(.a), all(.a)]", "[{\"a\":1},{\"a\":2}]", "[true,true]", 0},
    {"any(. == 1, error(\"x\"))", "[1]", "true", NO_JQ},
    {"any(error(\"x\"))", "[1]", "!x", 0},
    {"[first,last]", "[1,2,3]", "[1,3]", 0},
    {"[first,last]", "[]", "[null,null]", 0},
    {"[first(.[]),last(.[])]", "[1,2,3]", "[1,3]", 0},
    {"first(1,error(\"x\"))", "null", "1", 0},
    {"[first(empty)]", "null", "[]", 0},
    {"[first((1,2),3) | (., 10)]", "null", "[1,10]", 0},
    {"[.[] | first(.[] | select(. > 1))]", "[[1,2,3],[4]]", "[2,4]", 0},
    {"reverse", "[1,2,3]", "[3,2,1]", 0},
    {"reverse", "null", "[]", 0},
    {"reverse", "\"ab\"", "!is not an array", 0},
    {"error(\"boom\")", "null", "!boom", 0},
    {"error", "\"boom\"", "!boom", 0},
    {"error({a:1})", "null", "!{\"a\":1}", 0},
    {"[.[] | (.a | not) and (.b // false)]", "[{\"b\":1},{\"a\":1}]", "[true,false]", 0},
    {"1|not|not", "null", "true", 0},
    {" \t\n1 \r\n", "null", "1", NO_JQ},
    {"map({key:.id,value:.}) | from_entries | .b.n", "[{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2}]", "2", 0},
    {"[.items[] | .price * .quantity] | add", "{\"items\":[{\"price\":2,\"quantity\":3},{\"price\":4,\"quantity\":1}]}", "10", 0},
};

/* What is no expression of ours, and at which column. */
static const struct mistake_case {
    const char *text;
    size_t column;
    const char *what;
} mistakes[] = {
    {"", 1, "the expression ends, expected an expression"},
    {"   ", 4, "the expression ends"},
    {".a.", 4, "expected a name, a string"},
    {".a b", 4, "found \"b\", expected an operator or the end"},
    {".a |", 5, "expected an expression"},
    {"| .a", 1, "expected an expression"},
    {"1 +", 4, "expected an expression"},
    {"1 + * 2", 5, "expected an expression"},
    {"(1", 3, "expected \")\""},
    {"1)", 2, "expected an operator or the end"},
    {"[1", 3, "expected \"]\""},
    {"{a:1", 5, "expected \",\" or \"}\""},
    {"{a:1,}", 6, "expected a key"},
    {"{1:2}", 2, "expected a key"},
    {"{a 1}", 4, "expected \":\""},
    {"{(1)}", 5, "expected \":\""},
    {".[0", 4, "expected \"]\" or \":\""},
    {".[:]", 4, "expected an expression"},
    {"\"abc", 1, "this string has no end"},
    {"\"a\\q\"", 3, "no such escape"},
    {"\"\\u12\"", 2, "four hexadecimal digits"},
    {"\"\\ud800\"", 2, "half of a surrogate pair"},
    {"\"\\udc00\"", 2, "half of a surrogate pair"},
    {"\"\\u0000\"", 2, "\\u0000"},
    {"\"a\\(1\"", 6, "found \"\"\", expected \")\""},
    {"\"a\\(1", 6, "expected \")\""},
    {"\"\\(1;2)\"", 5, "expected \")\""},
    {"foo", 1, "unknown function \"foo\""},
    {".a | foo(1)", 6, "unknown function \"foo\""},
    {".steps.my-step.output", 11, "a name with \"-\" in it is written .[\"a-b\"]"},
    {"map", 1, "function \"map\" with 0 arguments"},
    {"map(1;2)", 1, "function \"map\" with 2 arguments"},
    {"length(1)", 1, "function \"length\" with 1 arguments"},
    {"$x", 1, "variables are outside the subset"},
    {"$ENV.HOME", 1, "variables are outside the subset"},
    {". as $x | $x", 3, "operator or the end"},
    {"..", 1, "recursive descent"},
    {"[..]", 2, "recursive descent"},
    {"@base64", 1, "formats are outside"},
    {".a = 1", 4, "to compare write =="},
    {".a |= 1", 4, "assignments"},
    {".a += 1", 4, "assignments"},
    {".a //= 1", 4, "assignments"},
    {"reduce .[] as $x (0; .)", 1, "outside the subset"},
    {"foreach .[] as $x (0; .)", 1, "outside the subset"},
    {"def f: 1; f", 1, "outside the subset"},
    {"try 1", 1, "outside the subset"},
    {"import \"a\" as b; 1", 1, "outside the subset"},
    {"input", 1, "unknown function"},
    {"env", 1, "unknown function"},
    {"now", 1, "unknown function"},
    {"test(\"a\")", 1, "unknown function"},
    {"range(5)", 1, "unknown function"},
    {"if 1 then 2", 12, "expected elif or else"},
    {"if 1 then 2 end", 13, "expected elif or else"},
    {"if 1 else 2 end", 6, "expected then"},
    {"if 1 then 2 else 3", 19, "expected end"},
    {"then", 1, "expected an expression"},
    {"and", 1, "expected an expression"},
    {"1 < 2 < 3", 7, "comparisons do not chain"},
    {"1 == 2 != 3", 8, "comparisons do not chain"},
    {"01", 1, "not a number"},
    {"1.", 1, "not a number"},
    {"1e", 1, "not a number"},
    {"1x", 1, "not a number"},
    {".5", 2, "operator or the end"},
    {"'a'", 1, "strings are written with"},
    {"1 && 2", 3, "write: and"},
    {"1 || 2", 3, "write: or"},
    {"# x", 1, "comments"},
    {".a?//1", 3, "write a blank"},
    {"!1", 1, "no part of an expression"},
    {"\x01", 1, "no part of an expression"},
    {".\xc3\xa9", 2, "no part of an expression"},
    {"1;2", 2, "operator or the end"},
    {"}", 1, "expected an expression"},
};
/* clang-format on */

static const struct json *parsed(struct arena *a, const char *text)
{
    struct json *j = NULL;
    struct json_fault f = {0};

    CHECK(json_parse(a, slice_of(text), &j, &f) == ERR_OK, "%s: %s", text, f.what);
    return j;
}

static enum err evaluate(struct arena *a, const char *text, const char *input,
                         const struct json **ret, struct error *e)
{
    struct expression *x = NULL;
    size_t column = 0;

    CHECK(expression_compile(slice_of(text), a, &x, &column, e) == ERR_OK, "%s: column %zu: %s",
          text, column, e->text);
    return expression_eval(x, parsed(a, input), a, ret, e);
}

static void an_expression_gives_what_the_table_says(void **state)
{
    (void)state;
    assert_true(COUNT_OF(cases) >= 200);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct expression_case *c = &cases[i];
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        enum err err = evaluate(&a, c->text, c->input, &j, &e);
        if (c->result[0] == '!') {
            CHECK(err == ERR_INVALID, "%s gives %.*s", c->text, SLICE_ARG(j->raw));
            CHECK(strstr(e.text, c->result + 1), "%s: %s", c->text, e.text);
            continue;
        }
        CHECK(err == ERR_OK, "%s: %s", c->text, e.text);
        CHECK(slice_is(j->raw, c->result) || json_hash(j) == json_hash(parsed(&a, c->result)),
              "%s gives %.*s", c->text, SLICE_ARG(j->raw));
        (void)parsed(&a, arena_copy(&a, j->raw).ptr); /* it is JSON, too */
    }
}

static void what_is_no_expression_is_refused_at_its_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        const struct mistake_case *c = &mistakes[i];
        CLEANUP(arena_fini) struct arena a = {0};
        struct expression *x = NULL;
        struct error e = {0};
        size_t column = 0;
        CHECK(expression_compile(slice_of(c->text), &a, &x, &column, &e) == ERR_INVALID, "%s",
              c->text);
        CHECK(!x, "%s", c->text);
        CHECK(column == c->column, "%s: column %zu: %s", c->text, column, e.text);
        CHECK(strstr(e.text, c->what), "%s: %s", c->text, e.text);
    }
}

static void a_failure_names_its_column(void **state)
{
    static const struct {
        const char *text;
        const char *story;
    } at[] = {
        {".a.b", "column 3: cannot index number with \"b\""},
        {"1 + (2 | .x)", "column 10: cannot index number with \"x\""},
        {"[1, \"a\" * {}]", "column 9: string (\"a\") and object ({}) cannot be multiplied"},
        {".a | keys", "column 6: number (1) has no keys"},
        {"map(1)[0] | map(.)", "column 13: cannot iterate over number (1)"},
        {"\"x\\(.a.b)\"", "column 7: cannot index number with \"b\""},
        {"{a: (1 | length + {})}", "column 17: number (1) and object ({}) cannot be added"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        CHECK(evaluate(&a, at[i].text, "{\"a\":1}", &j, &e) == ERR_INVALID, "%s", at[i].text);
        CHECK(strcmp(e.text, at[i].story) == 0, "%s: %s", at[i].text, e.text);
    }
}

/* ---- against jq ---- */

static void write_program(FILE *f)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (!(cases[i].flags & NO_JQ))
            fprintf(f, "%s(try [%s | %s] catch \"failed\")", i ? ",\n" : "", cases[i].input,
                    cases[i].text);
}

/* The same table by jq itself, in one run. */
static void jq_says_the_same(void **state)
{
    char program[] = "/tmp/expressions-XXXXXX";
    char command[200];
    char line[4096];
    int fd = mkstemp(program);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    (void)state;

    assert_non_null(f);
    if (system("jq --version 2>/dev/null | grep -q '^jq-1.6'") != 0) {
        (void)fclose(f);
        (void)unlink(program);
        print_message("jq 1.6 is not installed: skipped\n");
        skip();
    }
    write_program(f);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(command, sizeof command, "jq -nc -f %s", program);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct expression_case *c = &cases[i];
        CLEANUP(arena_fini) struct arena a = {0};
        if (c->flags & NO_JQ)
            continue;
        CHECK(fgets(line, sizeof line, out), "%s: jq says nothing more", c->text);
        const struct json *j = parsed(&a, line);
        if (c->result[0] == '!') {
            CHECK(j->type == JSON_STRING, "%s: jq says %s", c->text, line);
            continue;
        }
        CHECK(j->type == JSON_ARRAY && j->count == 1, "%s: jq says %s", c->text, line);
        CHECK(json_hash(j->child) == json_hash(parsed(&a, c->result)), "%s: jq says %s", c->text,
              line);
    }
    CHECK(!fgets(line, sizeof line, out), "jq says more: %s", line);
    assert_int_equal(pclose(out), 0);
    assert_int_equal(unlink(program), 0);
}

/* ---- limits ---- */

static void nobody_takes_more_than_the_limits(void **state)
{
    static const struct {
        const char *text, *story;
    } greedy[] = {
        {"map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)"
         "|"
         "map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|length",
         "steps"},
        {"[.[]|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.]",
         "steps"},
        {"\"x\" * 1000000000", "bytes"},
        {"\"0123456789\" * 1000 | . * 1000 | . * 1000", "bytes"},
        {"[\"0123456789\" * 100000 | ., ., ., ., . | . + .] | length", "bytes"},
        {"[\"0123456789\" * 300000 | ., .] | join(\"\")", "bytes"},
        {"(\"x\" * 1000000000)?", "bytes"},
        {"[(\"x\" * 1000000000)?]", "bytes"},
        {"(\"x\" * 1000000000) // 1", "bytes"},
        {"first(\"x\" * 1000000000)", "bytes"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(greedy); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        CHECK(evaluate(&a, greedy[i].text, "[1,2,3]", &j, &e) != ERR_OK, "%s", greedy[i].text);
        CHECK(strstr(e.text, greedy[i].story), "%s: %s", greedy[i].text, e.text);
        CHECK(a.total < 4 * (size_t)EXPRESSION_BYTES_MAX, "%s took %zu", greedy[i].text, a.total);
    }
}

static void repeat(struct buf *b, const char *text, int count)
{
    while (count-- > 0)
        buf_str(b, text);
}

/* Everything that nests, as deep as one likes: a mistake, never a stack that overflows. */
static void no_expression_nests_too_deeply(void **state)
{
    static const struct {
        const char *before, *inside, *after;
    } shapes[] = {
        {"(", "1", ")"},
        {"[", "1", "]"},
        {"{a:", "1", "}"},
        {"-", "1", ""},
        {"1+", "1", ""},
        {"1|", "1", ""},
        {".a", "", ""},
        {"[.", "", "]"},
        {"\"\\(", "1", ")\""},
        {"map(", "1", ")"},
        {"if 1 then ", "1", " else 2 end"},
        {"1//", "1", ""},
        {"if 1 then 2 elif ", "1 then 1 else 1 end", ""},
        {".[", "0", "]"},
        {".a?", "", ""},
        {"not|", "1", ""},
        {"1,", "1", ""},
        {"{\"\\(", "1", ")\":1}"},
        {".[1:", "0", "]"},
        {"first(", "1", ")"},
        {"1 and ", "1", ""},
        {".[]", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        bool refused = false;
        for (int depth = 1; depth < 40000; depth = depth < 120 ? depth + 1 : depth * 7) {
            CLEANUP(arena_fini) struct arena a = {0};
            CLEANUP(buf_fini) struct buf b = {0};
            struct expression *x = NULL;
            const struct json *j = NULL;
            struct error e = {0};
            size_t column = 0;
            repeat(&b, shapes[i].before, depth);
            buf_str(&b, shapes[i].inside);
            repeat(&b, shapes[i].after, depth);
            refused = expression_compile(buf_view(&b), &a, &x, &column, &e) != ERR_OK;
            if (!refused && expression_eval(x, parsed(&a, "{\"a\":null}"), &a, &j, &e) == ERR_OK)
                CHECK(j->raw.ptr, "%s", shapes[i].before);
        }
        CHECK(refused, "%s", shapes[i].before);
    }
}

static void a_result_never_nests_deeper_than_a_task_can_hold(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *j = NULL;
    struct error e = {0};
    (void)state;
    repeat(&b, "[", EXPRESSION_DEPTH_MAX);
    repeat(&b, "]", EXPRESSION_DEPTH_MAX);
    CHECK(evaluate(&a, b.ptr, "null", &j, &e) == ERR_OK, "%s", e.text);
    CHECK(evaluate(&a, "[.]", b.ptr, &j, &e) == ERR_INVALID, "one more");
    CHECK(strstr(e.text, "nested too deeply"), "%s", e.text);
}

/* ---- any bytes ---- */

static void try_bytes(const char *ptr, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    char *copy =
        malloc(len ? len : 1); /* of exactly its size: the sanitizer sees what lies behind it */
    struct expression *x = NULL;
    const struct json *j = NULL;
    struct error e = {0};
    size_t column = 0;

    assert_non_null(copy);
    memcpy(copy, ptr, len);
    if (expression_compile((struct slice){copy, len}, &a, &x, &column, &e) != ERR_OK)
        CHECK(column >= 1 && column <= len + 1, "%.*s: column %zu", (int)len, ptr, column);
    else if (expression_eval(x, parsed(&a, "{\"a\":[1,{\"b\":\"x\"}],\"b\":2.5}"), &a, &j, &e)
             == ERR_OK)
        CHECK(j->raw.ptr, "%.*s", (int)len, ptr);
    free(copy);
}

static void no_bytes_break_it(void **state)
{
    static const char *const bits[] = {
        ".",    ".a",      ".b",         "[",    "]",    "{",        "}",      "(",     ")",
        "|",    ",",       ":",          ";",    "?",    "+",        "-",      "*",     "/",
        "%",    "//",      "==",         "<",    "\"",   "\\(",      "\\",     "1",     "0.5",
        "1e9",  "and",     "or",         "not",  "if ",  " then ",   " else ", " end",  "elif ",
        "map(", "select(", "length",     "keys", "add",  "first(",   "error",  "empty", "\xc3\xa9",
        "a",    " ",       "null",       "true", "sort", "tostring", "$",      "@",     "[]",
        "[0]",  "any(",    "join(\"\")", ".[]",
    };
    struct prng p = {5};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t len = 0; len <= strlen(cases[i].text); len++)
            try_bytes(cases[i].text, len);
    for (int i = 0; i < 20000; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        for (uint32_t n = prng_below(&p, 12); n > 0; n--)
            buf_str(&b, bits[prng_below(&p, COUNT_OF(bits))]);
        try_bytes(buf_view(&b).ptr, b.len);
    }
    for (int i = 0; i < 20000; i++) {
        const char *text = cases[prng_below(&p, COUNT_OF(cases))].text;
        char copy[256];
        size_t len = strlen(text);
        if (len == 0 || len >= sizeof copy)
            continue;
        memcpy(copy, text, len);
        copy[prng_below(&p, (uint32_t)len)] = (char)prng_below(&p, 256);
        try_bytes(copy, len);
    }
}

/* ---- the manual ---- */

static const char *manual; /* the path of docs/expressions.md */

/* The next cell of a table row: up to a "|" that is not escaped; without blanks and `quotes`. */
static char *next_cell(char **row)
{
    char *cell = *row;
    char *to = cell;
    char *from = cell;

    while (*from && *from != '|') {
        if (from[0] == '\\' && from[1] == '|')
            from++;
        *to++ = *from++;
    }
    *row = *from ? from + 1 : from;
    *to = 0;
    while (to > cell && (to[-1] == ' ' || to[-1] == '`'))
        *--to = 0;
    while (*cell == ' ' || *cell == '`')
        cell++;
    return cell;
}

static bool check_row(char *row, size_t number)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *j = NULL;
    struct error e = {0};

    if (strncmp(row, "| `", 3) != 0)
        return false;
    row++;
    row[strcspn(row, "\n")] = 0;
    const char *text = next_cell(&row);
    const char *input = next_cell(&row);
    const char *result = next_cell(&row);
    if (input[0] == 0 || result[0] == 0)
        return false; /* another table */
    enum err err = evaluate(&a, text, input, &j, &e);
    if (strncmp(result, "error: ", 7) == 0) {
        CHECK(err == ERR_INVALID && strstr(e.text, result + 7), "line %zu: %s: %s", number, text,
              e.text);
        return true;
    }
    CHECK(err == ERR_OK, "line %zu: %s: %s", number, text, e.text);
    CHECK(json_hash(j) == json_hash(parsed(&a, result)), "line %zu: %s gives %.*s", number, text,
          SLICE_ARG(j->raw));
    return true;
}

static void every_example_of_the_manual_is_true(void **state)
{
    FILE *f = fopen(manual, "r");
    char line[1024];
    size_t number = 0;
    size_t examples = 0;
    (void)state;
    CHECK(f, "%s", manual);
    while (fgets(line, sizeof line, f))
        examples += check_row(line, ++number);
    (void)fclose(f);
    CHECK(examples >= 60, "%zu examples", examples);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_gives_what_the_table_says),
        cmocka_unit_test(what_is_no_expression_is_refused_at_its_column),
        cmocka_unit_test(a_failure_names_its_column),
        cmocka_unit_test(jq_says_the_same),
        cmocka_unit_test(nobody_takes_more_than_the_limits),
        cmocka_unit_test(no_expression_nests_too_deeply),
        cmocka_unit_test(a_result_never_nests_deeper_than_a_task_can_hold),
        cmocka_unit_test(no_bytes_break_it),
        cmocka_unit_test(every_example_of_the_manual_is_true),
    };

    manual = argc > 1 ? argv[1] : "docs/expressions.md";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
