/* Makes random expressions and inputs for against_jq.c, from productions: tables of texts in
 * which letters stand for other texts. Differences between Intact and jq 1.6 are listed here, and
 * are not generated (generate.h). */

#include "generate.h"

/*
 * Productions: texts in which "$" and a letter are replaced by another production. Each is a term,
 * so that it fits everywhere:
 *
 *   $n number   $s string   $a array   $o object   $b boolean   $x anything   $v several values
 *   $l literal  $i small number   $j small positive number   $t text   $k key   $c condition
 *   $T text that is not empty   $K key of an object as written   $p path
 *   $e chain of operators without parentheses
 *
 * Differences of jq 1.6, which are not generated:
 * - `?` catches later failures as well: it is used only where nothing after it can fail, [A?].
 * - error(null) is no failure; limit(0; f) gives one value.
 * - any and all: conditions with several values; values that fail after the deciding one.
 * - map_values(empty) on arrays drops every second value.
 * - index, rindex and indices count bytes; on objects they are paths; for "" they never end.
 * - reverse of "", {} and 0 is []; join of one member ignores the separator.
 * - flatten(0.5) flattens all; {a: 1 + 2} needs parentheses; 1 / 0 fails at compile time.
 * - There is a negative zero, printed as "-0".
 * - {if} is no shorthand; "00" is a number.
 * - from_entries lacks the short names k and v.
 * - Numbers beyond 2^53 are doubles; 1.0 and 1e2 become 1 and 100 even if only copied.
 */

/* clang-format off */
static const char *const numbers[] = {
    "$i", "$i", ".n", "($n+$n)", "($n-$n)", "($n*$n+0)", "($n/(.|$n)+0)", "($n%(.|$n))", "(-$n+0)", "-$i",
    "($a|length)", "($s|length)", "($o|length)", "($x|length)", "($a|map($n)|add)", "($a|add)",
    "($s|tonumber)", "($n|floor)", "($n|ceil|.+0)", "($n|round|.+0)", "($a|arrays|index($l))", "($a|arrays|rindex($l))",
    "first(range($j))", "([$v]|length)", "($a|map($n)|min)", "($a|map($n)|max)", "(if $b then $n else $n end)",
    "($a|.[$i])", "(.n//$n)", "($n|tostring|tonumber)", "($a|map(numbers)|add)", "($t|index($T))",
    "last(range($i;$j))", "(.a|length)", "([$e]|length)", "($x|numbers)",
};
static const char *const strings[] = {
    "$t", "$t", ".s", "($s+$s)", "($s*$n)", "\"\\($x)\"", "\"a\\($x)-\\($n)é\"", "($x|tostring)", "($x|tojson)",
    "($x|type)", "($s|ascii_upcase)", "($s|ascii_downcase)", "($a|map(tostring)|join($t))", "($s|.[$i:$i])",
    "($s|.[$i:])", "($s|.[:$i])", "($s|ltrimstr($t))", "($s|rtrimstr($t))", "($s|split($t)|first)",
    "($o|keys|first)", "($o|keys_unsorted|last)", "([$s,$s]|add)", "(if $b then $s else $s end)", "(.s//$s)",
    "($a|join($t))", "\"\\($s|ascii_upcase)\\(\"in\\($x)\")\"", "($x|strings)", "\"\\($v)\\($v)\"",
};
static const char *const arrays[] = {
    "[]", ".a", ".a", "[$x]", "[$x,$x]", "[$v]", "[$n,$n,$n]", "[$e]", "($a+$a)", "($a-$a)", "($a|map($x))",
    "($a|map(select($b)))", "($a|sort)", "($a|sort_by($x))", "($a|unique)", "($a|unique_by($x))", "($a|group_by($x))",
    "($a|arrays|reverse)", "($o|keys)", "($o|to_entries)", "($a|to_entries)", "($a|flatten)", "($a|flatten($j))",
    "($s|split($t))", "($s/$t)", "($a|.[$i:$i])", "($a|.[$i:])", "($a|.[:$n])", "[limit($j;$v)]", "[range($i;$i)]",
    "[range($i;$i;$i)]", "[range($n)]", "[$x?]", "[($v)?]", "[.[]?]", "($a|tojson|fromjson)", "[$a[]]",
    "[$o[]]", "($t|indices($T))", "($a|arrays|indices($l))", "($a|arrays|indices([$l]))", "($a|map(arrays,strings,nulls))",
    "($a|map(scalars))", "($a|map(iterables))", "($a|map_values([$v]))", "[first($v)]", "[$x|values]", "(.a//$a)",
    "[.[]?|.a?]", "($a|map(booleans,objects))", "[$a|first,last]", "[{($k,$k):$v}]", "[if ($b,$b) then $x else $v end]",
    "[($b,$b) and ($b,$b)]", "[($b,$b) or ($b,$b)]", "[($v)//($v)]", "[($v)+($v)]", "[($v)|$x]", "[$a|.[$v]]",
    "[{a:($v),b:($v)}]", "[\"\\($v)-\\($v)\"]", "[$a|.[$v:$v]]", "($a|sort_by($x,$x))", "[limit($j,$j;$v)]",
};
static const char *const objects[] = {
    "{}", ".o", ".o", "{$K:$x}", "{$K:$x,$K:$x}", "{$h}", "{($s):$x}", "{\"\\($x)\":$x}", "($o+$o)", "($o*$o)",
    "($a|map(objects)|add)", "($o|with_entries(select($b)))", "($o|objects|map_values($x))", "($o|objects|map_values(select($b)))",
    "($o|to_entries|from_entries)", "($a|map({key:($x|tostring),value:.})|from_entries)", "(.o//$o)",
    "($a|map({(tostring):.})|add)", "($o|tojson|fromjson)", "{a,$h}", "(if $b then $o else $o end)",
    "($a|group_by($x)|map({($s):length})|add)", "($o|with_entries({key:(.key+$t),value:.value}))", "($x|objects)",
};
static const char *const booleans[] = {
    "true", "false", ".b", "($x==$x)", "($n<$n)", "($x<$x)", "($x>=$x)", "($x!=$x)", "($b and $b)", "($b or $b)",
    "($x|not)", "($o|has($k))", "($a|has($i))", "($s|startswith($t))", "($s|endswith($t))", "($s|contains($t))",
    "($a|contains($a))", "($o|contains($o))", "($x|contains($x))", "($x|inside($x))", "($k|in($o))", "($a|any)", "($a|all)",
    "($a|any($c))", "($a|all($c))", "any($a[];$c)", "all($a[];$c)", "any(range($j);$c)", "isempty($v)", "($e)", "($x>$x)",
    "($x|type==\"number\")", "($s<$s)", "($a<$a)", "($o<$o)", "($o==$o)",
};
static const char *const values[] = {
    "$x", "($x,$x)", "($v,$v)", "$a[]", "$o[]", "empty", "range($j)", "($a|.[])", "(if $b then $v else empty end)",
    "($v|select($b))", "($a[]|$x)", "limit($j;$v)", "(1,null,2)", "($x//$v)",
};
static const char *const literals[] = {"$i", "$t", "null", "true", "false", "[]", "{}", "[$i]", "{\"a\":$i}", "[$l]"};
static const char *const small[] = {"0", "1", "2", "3", "5", "10", "0.5", "1.5", "100", "7"};
static const char *const positive[] = {"1", "2", "3", "4"};
static const char *const texts[] = {"\"\"", "\"a\"", "\"b\"", "\"ab\"", "\"b,c\"", "\",\"", "\"12\"", "\"-1.5\"", "\" \"",
                                    "\"aXa\"", "\"abcabc\""};
static const char *const some_text[] = {"\"a\"", "\"b\"", "\"ab\"", "\"b,\"", "\",\"", "\"bc\""};
static const char *const keys[] = {"\"a\"", "\"b\"", "\"x y\"", "\"é\"", "\"n\""};
static const char *const names[] = {"a", "b", "\"x y\"", "if", "\"é\"", "n"};
static const char *const shorthands[] = {"a", "b", "\"x y\"", "\"é\"", "n"};
static const char *const conditions[] = {".==$l", ".>$i", ".!=null", "type==\"string\"", "not", ".<$l", "tostring|length>$j"};
static const char *const anything[] = {"$n", "$s", "$a", "$o", "$b", "$l", "$e", "$p", "(if $x then $x else $x end)",
    "($x//$x)", "($x|$x)", "null", "(if $b then $x elif $b then $x else $x end)", "first($v)", "last($v)",
    "($x|$p)", "($a|max)", "($a|min)", "($a|max_by($x))", "($a|min_by($x))", "($a|first)", "($a|last)", "($s|tojson|fromjson)",
    "($x|$e)", "isempty($v)", "($v)"};
static const char *const paths[] = {".", ".a", ".o.a", ".[$i]", ".o[\"x y\"]", ".a[$i]", ".a[-$j]", ".o", ".a", ".n", ".s",
    ".a[$j].b", ".o.\"é\"", ".x.y", ".a[$n]", ".o[$k]", ".o[$s]", ".a[$i:$i]", ".[$k]", ".o.a.b", ".a[0][0]"};
/* clang-format on */

static const struct table {
    char name;
    const char *const *texts;
    size_t count;
} tables[] = {
    {'n', numbers, COUNT_OF(numbers)},       {'s', strings, COUNT_OF(strings)},
    {'a', arrays, COUNT_OF(arrays)},         {'o', objects, COUNT_OF(objects)},
    {'b', booleans, COUNT_OF(booleans)},     {'v', values, COUNT_OF(values)},
    {'l', literals, COUNT_OF(literals)},     {'i', small, COUNT_OF(small)},
    {'j', positive, COUNT_OF(positive)},     {'t', texts, COUNT_OF(texts)},
    {'T', some_text, COUNT_OF(some_text)},   {'k', keys, COUNT_OF(keys)},
    {'K', names, COUNT_OF(names)},           {'h', shorthands, COUNT_OF(shorthands)},
    {'c', conditions, COUNT_OF(conditions)}, {'x', anything, COUNT_OF(anything)},
    {'p', paths, COUNT_OF(paths)},
};

/* What stands for a production when it must end. */
static const struct {
    char name;
    const char *text;
} ends[] = {
    {'n', "1"}, {'s', "\"a\""}, {'a', "[1,2]"}, {'o', "{}"}, {'b', "true"},
    {'v', "."}, {'l', "1"},     {'x', "."},     {'p', "."},  {'e', "."},
};

static void generate(struct prng *p, struct buf *b, char name, int depth);

static void fill_in(struct prng *p, struct buf *b, const char *text, int depth)
{
    for (; *text; text++) {
        if (*text == '$')
            generate(p, b, *++text, depth);
        else
            buf_byte(b, *text);
    }
}

/* Terms and operators in a row, so that the binding of operators shows. Comparisons do not chain:
 * after one comes something that binds less tightly. */
static void generate_chain(struct prng *p, struct buf *b, int depth)
{
    static const char *const compares[] = {"==", "!=", "<", "<=", ">", ">="};
    static const char *const tight[] = {"+", "-", "*", "+", "-"};
    static const char *const loose[] = {" and ", " or ", "//", "|"};
    bool has_compared = false;

    buf_byte(b, '(');
    for (uint32_t n = 2 + prng_below(p, 3); n > 0; n--) {
        generate(p, b, prng_chance(p, 60) ? 'n' : 'x', depth);
        if (n == 1)
            break;
        if (!has_compared && prng_chance(p, 25)) {
            buf_str(b, compares[prng_below(p, COUNT_OF(compares))]);
            has_compared = true;
        } else if (prng_chance(p, 50)) {
            buf_str(b, tight[prng_below(p, COUNT_OF(tight))]);
        } else {
            buf_str(b, loose[prng_below(p, COUNT_OF(loose))]);
            has_compared = false;
        }
    }
    buf_byte(b, ')');
}

static bool is_end(struct buf *b, char name)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends[i].name == name) {
            buf_str(b, ends[i].text);
            return true;
        }
    return false; /* it ends by itself */
}

static void generate(struct prng *p, struct buf *b, char name, int depth)
{
    if (depth == 0 && is_end(b, name))
        return;
    if (name == 'e') {
        generate_chain(p, b, depth - 1);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table *t = &tables[i];
        if (t->name != name)
            continue;
        const char *text = t->texts[prng_below(p, (uint32_t)t->count)];
        fill_in(p, b, text, depth > 0 ? depth - 1 : 0);
        return;
    }
    UNREACHABLE();
}

void generate_expression(struct prng *p, struct buf *b)
{
    static const char kinds[] = "xxnsaaaobev";

    generate(p, b, kinds[prng_below(p, sizeof kinds - 1)], 1 + (int)prng_below(p, 4));
}

/* ---- inputs ---- */

static void generate_value(struct prng *p, struct buf *b, int depth)
{
    /* clang-format off */
    static const char *const leaves[] = {"null", "true", "false", "0", "1", "2", "-3", "0.5", "1.5", "100", "12", "\"\"", "\"a\"",
        "\"b\"", "\"ab\"", "\"é\"", "\"12\"", "\"b,c\"", "\"x y\"", "\"\xf0\x9f\x98\x80z\"", "\"-1.5\"", "[]", "{}", "\"\\n\\\"\\\\\""};
    /* clang-format on */
    uint32_t shape = prng_below(p, depth > 0 ? 10 : 4);
    uint32_t first = prng_below(p, COUNT_OF(keys));

    if (shape < 4) {
        buf_str(b, leaves[prng_below(p, COUNT_OF(leaves))]);
        return;
    }
    bool is_array = shape < 7;
    buf_byte(b, is_array ? '[' : '{');
    for (uint32_t i = 0, n = prng_below(p, 4); i < n; i++) {
        buf_str(b, i ? "," : "");
        if (!is_array) {
            buf_str(b, keys[(first + i) % COUNT_OF(keys)]);
            buf_byte(b, ':');
        }
        generate_value(p, b, depth - 1);
    }
    buf_byte(b, is_array ? ']' : '}');
}

void generate_input(struct prng *p, struct buf *b)
{
    static const struct {
        const char *name;
        const char *otherwise;
    } members[] = {
        {"\"a\"", "[3,1,2]"}, {"\"o\"", "{\"a\":1}"}, {"\"n\"", "7"},
        {"\"s\"", "\"abc\""}, {"\"b\"", "true"},
    };

    if (prng_chance(p, 25)) {
        generate_value(p, b, 3);
        return;
    }
    buf_byte(b, '{');
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        buf_str(b, i ? "," : "");
        buf_str(b, members[i].name);
        buf_byte(b, ':');
        if (prng_chance(p, 40))
            buf_str(b, members[i].otherwise);
        else
            generate_value(p, b, 2);
    }
    buf_byte(b, '}');
}
