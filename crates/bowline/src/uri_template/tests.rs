//! What templates match, expand to and refuse.

use proptest::prelude::*;

use super::*;

/// The variables of RFC 6570, 3.2, without its maps.
const VALUES: [(&str, &str); 22] = [
    ("count", "one"),
    ("count", "two"),
    ("count", "three"),
    ("dom", "example"),
    ("dom", "com"),
    ("dub", "me/too"),
    ("hello", "Hello World!"),
    ("half", "50%"),
    ("var", "value"),
    ("who", "fred"),
    ("base", "http://example.com/home/"),
    ("path", "/foo/bar"),
    ("list", "red"),
    ("list", "green"),
    ("list", "blue"),
    ("v", "6"),
    ("x", "1024"),
    ("y", "768"),
    ("empty", ""),
    ("empty_keys", ""),
    ("encoded", "%20é"),
    ("世", "never"),
];

#[test]
fn expansion_of_the_rfc() {
    for (template, expected) in [
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count}", "/one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+encoded}", "%20%C3%A9"),
        ("{encoded}", "%2520%C3%A9"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("up{+path}/{x}", "up/foo/bar/1024"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("X{.dom*}", "X.example.com"),
        ("X{.list}", "X.red,green,blue"),
        ("X{.empty}", "X."),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var:1,x}", "/v/1024"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;v,undef,who}", ";v=6;who=fred"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?undef}", ""),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{?x}{&y}", "?x=1024&y=768"),
        ("{?undef}{&y}", "?y=768"),
        ("té%20st/{x}", "t%C3%A9%20st/1024"),
    ] {
        let parsed = UriTemplate::parse(template).unwrap();
        assert_eq!(parsed.expand(&VALUES), expected, "{template}");
        assert_eq!(parsed.to_string(), template);
    }
}

#[test]
fn refused_templates_say_what_and_where() {
    let long = "a".repeat(UriTemplate::MAX_LENGTH + 1);
    let wide: String = (0..65).map(|n| format!("{{v{n}}}/")).collect();
    for (template, expected) in [
        ("a{b", "byte 1 of the template: `{` is never closed"),
        ("a}b", "byte 1 of the template: `}` closes nothing"),
        ("a{}", "byte 2 of the template: `{}` names no variable"),
        ("{+}", "byte 2 of the template: a variable has no name"),
        ("{a,}", "byte 3 of the template: a variable has no name"),
        ("{a{b}}", "byte 2 of the template: `{` is not allowed in the name of a variable"),
        ("{user-id}", "byte 5 of the template: `-` is not allowed in the name of a variable"),
        ("{a.}", "byte 1 of the template: a `.` in a variable's name stands between letters"),
        ("x{=a}", "byte 2 of the template: the operator `=` is reserved by RFC 6570"),
        ("x{|a}", "byte 2 of the template: the operator `|` is reserved by RFC 6570"),
        ("{$a}", "byte 1 of the template: `$` is not allowed in the name of a variable"),
        ("{é}", "byte 1 of the template: `é` is not allowed in the name of a variable"),
        ("{a:0}", "byte 3 of the template: expected a length from 1 to 9999"),
        ("{a:+1}", "byte 3 of the template: expected a length from 1 to 9999"),
        ("{a:10000}", "byte 3 of the template: expected a length from 1 to 9999"),
        ("{a:}", "byte 3 of the template: expected a length from 1 to 9999"),
        ("{a:3*}", "byte 2 of the template: `:` and `*` exclude each other"),
        ("{/a*,b}", "byte 5 of the template: no variable can follow one with `*`"),
        ("{a}/{a}", "byte 5 of the template: the variable `a` is repeated"),
        ("{/a:1,a}", "byte 6 of the template: the variable `a` is repeated"),
        (
            "{a}{b}",
            "byte 3 of the template: nothing tells where the variable before ends and this begins",
        ),
        (
            "{/a*}{+b}",
            "byte 5 of the template: nothing tells where the variable before ends and this begins",
        ),
        ("a b", "byte 1 of the template: ` ` is not allowed in a URI"),
        ("a\\b", "byte 1 of the template: `\\` is not allowed in a URI"),
        ("a\nb", "byte 1 of the template: a control character"),
        ("100%", "byte 3 of the template: `%` stands before two hexadecimal digits"),
        ("%2{a}", "byte 0 of the template: `%` stands before two hexadecimal digits"),
        (&long, "byte 4096 of the template: the template has more than 4096 bytes"),
        (&wide, "byte 375 of the template: the template has more than 64 variables"),
    ] {
        let error = UriTemplate::parse(template).unwrap_err();
        assert_eq!(error.to_string(), expected, "{template}");
    }
}

/// `expected` lists `name=value`; "different" and "unsafe x" are the other outcomes.
fn check(template: &str, uri: &str, expected: &[&str]) {
    let template = UriTemplate::parse(template).unwrap();
    let found = match template.matches(uri) {
        Match::Values(values) => values.iter().map(|(n, v)| format!("{n}={v}")).collect(),
        Match::Unsafe { variable } => vec![format!("unsafe {variable}")],
        Match::Different => vec!["different".to_owned()],
    };
    assert_eq!(found, expected, "{template} on {uri:?}");
}

const NO: &[&str] = &["different"];

#[test]
fn plain_variables() {
    check("", "", &[]);
    check("", "a", NO);
    check("memo://all", "memo://all", &[]);
    check("memo://all", "memo://all/", NO);
    check("test://template/{id}/data", "test://template/123/data", &["id=123"]);
    check("test://template/{id}/data", "test://template//data", NO);
    check("test://template/{id}/data", "test://template/1/2/data", NO);
    check("test://template/{id}/data", "test://template/1/data/", NO);
    check("test://template/{id}/data", "xtest://template/1/data", NO);
    check("a/{x}", "a/b?c", NO);
    check("a/{x}", "a/b#c", NO);
    check("a/{x}", "a/b&c=d,e;f:g@h", &["x=b&c=d,e;f:g@h"]);
    check("a?x={x}&y={y}", "a?x=1&y=2", &["x=1", "y=2"]);
    check("a?x={x}&y={y}", "a?x=1&z=3&y=2", NO);
    check("{name}.{kind}", "a.tar.gz", &["name=a", "kind=tar.gz"]);
    check("{a}-{b}-{c}", "1-2-3-4", &["a=1", "b=2", "c=3-4"]);
    check("{a}ab{b}", "aabab", &["a=a", "b=ab"]);
    check("{x,y}", "1,2", &["x=1", "y=2"]);
    check("{x,y}", "1", &["x=1"]);
    check("{x,y}", "1,", &["x=1", "y="]);
    check("{x,y}", "1,2,3", NO);
    check("{x,y*}", "1,2,3", &["x=1", "y=2", "y=3"]);
    check("{x:3}", "val", &["x=val"]);
    check("{x:3}", "%E4%B8%96%E4%B8%96%E4%B8%96", &["x=世世世"]);
    check("{x:3}", "valu", NO);
}

#[test]
fn operators() {
    check("file://{+path}", "file:///a/b?c#d", &["path=/a/b?c#d"]);
    check("{+path}/{name}.txt", "a/b/c.txt", &["path=a/b", "name=c"]);
    check("{+path}/{name}.txt", "c.txt", NO);
    check("{+x,y}", "a/1,b/2", &["x=a/1", "y=b/2"]);
    check("a{#f}", "a#b/c#d", &["f=b/c#d"]);
    check("a{#f}", "a#", &["f="]);
    check("a{#f}", "a", &[]);
    check("{+a}{#b}", "x#y", &["a=x", "b=y"]);
    check("{name}{.kind}", "a.tar.gz", &["name=a.tar", "kind=gz"]);
    check("{name}{.kind}", "a", &["name=a"]);
    check("www{.dom*}", "www.example.com", &["dom=example", "dom=com"]);
    check("a{/x,y}/z", "a/1/2/z", &["x=1", "y=2"]);
    check("a{/x,y}/z", "a/1/z", &["x=1"]);
    check("a{/x,y}/z", "a/z", &[]);
    check("a{/x,y}/z", "a/1/2/3/z", NO);
    check("a{/x*}/z", "a/1/2/3/z", &["x=1", "x=2", "x=3"]);
    check("a{/x*}{/y}", "a/1/2/3", &["x=1", "x=2", "y=3"]);
    check("a{/x*}", "a", &[]);
    check("a{/x*}", "a/", &["x="]);
    check("a{/x*}", "ab", NO);
    check("a{;p,q}/b", "a;q=1;p/b", &["p=", "q=1"]);
    check("a{;p,q}/b", "a/b", &[]);
    check("a{;p,q}/b", "a;r=1/b", NO);
}

#[test]
fn queries_in_any_order() {
    check("a{?q,r}", "a?r=1&q=2", &["q=2", "r=1"]);
    check("a{?q,r}", "a?r=1", &["r=1"]);
    check("a{?q,r}", "a", &[]);
    check("a{?q,r}", "a?q=", &["q="]);
    check("a{?q,r}", "a?q=x=y", &["q=x=y"]);
    check("a{?q,r}", "a?s=1", NO);
    check("a{?q,r}", "a?q=1&q=2", NO);
    check("a{?q,r}", "a?q=1&", NO);
    check("a{?q*,r}", "a?q=1&r=3&q=2", &["q=1", "q=2", "r=3"]);
    check("a{?q}{&r}{#f}", "a?r=1&q=2#x", &["q=2", "r=1", "f=x"]);
    check("a?b=1{&c}", "a?b=1&c=2", &["c=2"]);
    check("a?b=1{&c}", "a?b=1", &[]);
    check("a?b={b}{&c}", "a?b=1&c=2", &["b=1", "c=2"]);
    check("{+path}{?q}", "a/b?q=1", &["path=a/b", "q=1"]);
    check("{+path}{?q}", "a/b?z=1", NO);
    check("a{?q:2}", "a?q=123", NO);
}

#[test]
fn encoding() {
    check("a/{x}", "a/%E4%B8%96%20", &["x=世 "]);
    check("a/{x}", "a/世 界", &["x=世 界"]);
    check("世/{x}", "世/1", &["x=1"]);
    check("世/{x}", "%E4%B8%96/1", &["x=1"]);
    check("a/{x}", "a/%", NO);
    check("a/{x}", "a/%4", NO);
    check("a/{x}", "a/%+1", NO);
    check("a/{x}", "a/%zz世", NO);
    check("a/{x}", "a/%FF", NO);
    check("a/{x}", "a/%252F", &["x=%2F"]);
    check("{x}0{y}", "%200%20", &["x= ", "y= "]);
    check("{x}2{y}", "%20", NO);
}

#[test]
fn values_that_may_be_attacks() {
    check("a/{x}", "a/..", &["unsafe x"]);
    check("a/{x}", "a/%2e%2E", &["unsafe x"]);
    check("a/{x}", "a/.%2e", &["unsafe x"]);
    check("a/{x}", "a/..%2fb", &["unsafe x"]);
    check("a/{x}", "a/b%2Fc", &["unsafe x"]);
    check("a/{x}", "a/b\\c", &["unsafe x"]);
    check("a/{x}", "a/b%5Cc", &["unsafe x"]);
    check("a/{x}", "a/b%00", &["unsafe x"]);
    check("a/{x}", "a/b..c", &["x=b..c"]);
    check("a/{x}", "a/...", &["x=..."]);
    check("a/{+x}", "a/b/../c", &["unsafe x"]);
    check("a/{+x}", "a/../c", &["unsafe x"]);
    check("a/{+x}", "a/b/..", &["unsafe x"]);
    check("a{/x*}", "a/b/../c", &["unsafe x"]);
    check("a{/x*}", "a/b/c%2Fd", &["unsafe x"]);
    check("a{#x}", "a#../b", &["unsafe x"]);
    check("a{?x,y}", "a?y=..&x=b", &["unsafe y"]);
    check("a/{x}/{y}", "a/b/..", &["unsafe y"]);
    check("a/{x}/{y}", "a/../%", NO);

    let template = UriTemplate::parse("a/{x}{?y}").unwrap().allow_unsafe_values();
    let values = vec![("x", "..".to_owned()), ("y", "../\0\\".to_owned())];
    assert_eq!(template.matches("a/..?y=%2e.%2F%00%5c"), Match::Values(values));
}

/// Each would take a backtracking matcher ages: these end, or the test run does not.
#[test]
fn long_uris_are_not_expensive() {
    let many = "a".repeat(1 << 20);
    let wide: String = (0..16).map(|n| format!("{{+v{n}}}a")).collect();
    let tail = |uri: &str| format!("{uri}!");
    for (template, uri) in [
        (format!("{wide}b"), many.clone()),
        (format!("{wide}b"), tail(&many)),
        ("{+a}a{+b}a{+c}a{+d}b".to_owned(), many.clone()),
        ("{+a}aaaaaaaaaaaaaaaaaaaaaaaab{+b}".to_owned(), many.clone()),
        ("x{/a*}{/b*}{/c*}{/d*}!".to_owned(), format!("x{}", "/".repeat(1 << 20))),
        ("x{/a,b,c,d,e,f}{/g*}{.h*}z".to_owned(), format!("x{}", "/.".repeat(1 << 19))),
        ("x{?a,b*}".to_owned(), format!("x?{}z", "b=1&".repeat(1 << 18))),
        ("x{;a}{;b}{;c}{;d}".to_owned(), format!("x{}", ";".repeat(1 << 20))),
        ("x/{a}".to_owned(), format!("x/{}%", "%41".repeat(1 << 18))),
    ] {
        let template = UriTemplate::parse(&template).unwrap();
        assert_eq!(template.matches(&uri), Match::Different, "{template}");
    }
    let template = UriTemplate::parse(&wide).unwrap();
    let Match::Values(values) = template.matches(&many) else { panic!("it matches") };
    assert_eq!(values.len(), 16);
    assert_eq!(template.expand(&values), many);
}

/// Templates whose variables are all of one kind, with what separates their values reserved.
const ROUND_TRIPS: [&str; 10] = [
    "memo://{a}/x/{b}:{c}",
    "{a,b,c}",
    "x{/a,b,c}",
    "x{/a,b}{?c}",
    "x{?a,b,c}",
    "x?y=1{&a,b,c}",
    "x{;a,b,c}/y",
    "x{/a}{?b}{#c}",
    "x{/a}/y/{b}{;c}",
    "世{/a}{?b}{&c}",
];

proptest! {
    #[test]
    fn what_is_expanded_matches(
        index in 0..ROUND_TRIPS.len(),
        values in prop::array::uniform3("[^/\\\\\0]{1,12}"),
    ) {
        prop_assume!(!values.iter().any(|value| value == ".."));
        let template = UriTemplate::parse(ROUND_TRIPS[index]).unwrap();
        let [a, b, c] = values;
        let pairs = vec![("a", a), ("b", b), ("c", c)];
        let uri = template.expand(&pairs);
        // `{#c}` keeps what looks encoded, so that such a text comes back decoded.
        prop_assume!(!(ROUND_TRIPS[index].contains("{#c}") && pairs[2].1.contains('%')));
        prop_assert_eq!(template.matches(&uri), Match::Values(pairs), "{}", uri);
    }

    #[test]
    fn lists_survive(list in prop::collection::vec("[^/\\\\\0.]{1,5}", 1..5)) {
        for template in ["x{/a*}", "x{?a*}", "x{;a*}", "x{.a*}"] {
            let template = UriTemplate::parse(template).unwrap();
            let pairs: Vec<_> = list.iter().map(|value| ("a", value.clone())).collect();
            prop_assert_eq!(template.matches(&template.expand(&pairs)), Match::Values(pairs));
        }
    }

    #[test]
    fn what_matches_expands_to_the_same_values(
        template in "[ab/.]{0,2}(\\{[+/.?#;]?x\\*?\\}[ab/?]{0,2}){0,1}(\\{[+/.?#;&]?y\\}[ab/]{0,2})?",
        uri in "[abxy/.?=&%25#;]{0,12}",
    ) {
        if let Ok(template) = UriTemplate::parse(&template)
            && let Match::Values(values) = template.matches(&uri)
        {
            // `{+x}` keeps `%25` as it is, so the text may change once, but never its reading.
            let again = template.expand(&values);
            if !again.contains('%') {
                prop_assert_eq!(template.matches(&again), Match::Values(values), "{}", again);
            }
        }
    }

    #[test]
    fn no_text_breaks_the_parser(text in "[ab{}+#./;?&,*:1%é]{0,16}", uri in "\\PC{0,16}") {
        if let Ok(template) = UriTemplate::parse(&text) {
            template.matches(&uri);
        }
    }
}
