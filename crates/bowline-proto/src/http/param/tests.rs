//! What a client sends for its arguments is what a server wants to see.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn mirror() -> ParamHeaders {
    ParamHeaders::parse(&json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
            "query": {"type": "string"},
            "filter": {"properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}},
        },
    }))
    .unwrap()
}

fn raw(text: &str) -> Raw<'_> {
    Raw::parse(text).unwrap()
}

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = format!("mcp-param-{name}").parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

#[test]
fn headers_of_a_call() {
    fn check(arguments: &str, expected: &[(&str, &str)]) {
        let arguments = raw(arguments);
        let encoded = mirror().encode(Some(arguments)).unwrap();
        let encoded: HeaderMap = encoded.into_iter().collect();
        assert_eq!(encoded, map(expected), "{arguments:?}");
        mirror().check(&encoded, Some(arguments)).unwrap();
    }
    check("{}", &[]);
    check(r#"{"query":"SELECT 1"}"#, &[]);
    check(r#"{"region":"us-west1"}"#, &[("region", "us-west1")]);
    check(r#"{"reg\u0069on":"us\u002dwest1"}"#, &[("region", "us-west1")]);
    check(r#"{"region":""}"#, &[("region", "")]);
    check(r#"{"region":null,"verbose":null}"#, &[]);
    check(r#"{"region":" padded "}"#, &[("region", "=?base64?IHBhZGRlZCA=?=")]);
    check(r#"{"region":"a\r\nEvil: 1"}"#, &[("region", "=?base64?YQ0KRXZpbDogMQ==?=")]);
    check(r#"{"verbose":true}"#, &[("verbose", "true")]);
    check(r#"{"verbose":false}"#, &[("verbose", "false")]);
    check(r#"{"priority":42}"#, &[("priority", "42")]);
    check(r#"{"priority":-7}"#, &[("priority", "-7")]);
    check(r#"{"priority":42.0}"#, &[("priority", "42")]);
    check(r#"{"priority":4.2e1}"#, &[("priority", "42")]);
    check(r#"{"priority":-0.0}"#, &[("priority", "0")]);
    check(r#"{"priority":9007199254740991}"#, &[("priority", "9007199254740991")]);
    check(r#"{"priority":-9007199254740991}"#, &[("priority", "-9007199254740991")]);
    check(r#"{"priority":9007199254740992}"#, &[]);
    check(r#"{"priority":-9007199254740992}"#, &[]);
    check(r#"{"priority":9007199254740993.0}"#, &[]);
    check(r#"{"priority":1e400}"#, &[]);
    check(r#"{"priority":1.5}"#, &[]);
    check(r#"{"priority":"high"}"#, &[("priority", "high")]);
    check(r#"{"region":["us"],"priority":{}}"#, &[]);
    check(r#"{"filter":{"tenant":"a","other":1}}"#, &[("tenant", "a")]);
    check(r#"{"filter":{"region":"a"},"tenant":"b"}"#, &[]);
    check(r#"{"filter":"a"}"#, &[]);
    check(r#"{"filter":null}"#, &[]);
    check(r#"{"query":1,"query":2}"#, &[]);

    assert!(mirror().encode(None).unwrap().is_empty());
    assert!(mirror().check(&HeaderMap::new(), None).is_ok());
}

/// `error` is the message's beginning, or nothing.
fn check(arguments: &str, lines: &[(&str, &str)], error: &str) {
    let outcome = mirror().check(&map(lines), Some(raw(arguments)));
    let found = outcome.err().map(|error| error.to_error_object().message);
    let found = found.unwrap_or_default();
    assert_eq!(found.is_empty(), error.is_empty(), "{arguments} {lines:?}: {found}");
    assert!(found.starts_with(error), "{arguments} {lines:?}: {found}");
}

#[test]
fn headers_that_agree() {
    check(r#"{"region":"Hello"}"#, &[("region", "=?base64?SGVsbG8=?=")], "");
    check(r#"{"region":"=?base64?SGVsbG8="}"#, &[("region", "=?base64?SGVsbG8=")], "");
    check(r#"{"region":"SGVsbG8=?="}"#, &[("region", "SGVsbG8=?=")], "");
    check(r#"{"region":"a"}"#, &[("REGION", " a ")], "");
    check(r#"{"priority":42}"#, &[("priority", "42.0")], "");
    check(r#"{"priority":42.0}"#, &[("priority", "42")], "");
    check(r#"{"priority":42}"#, &[("priority", "=?base64?NDI=?=")], "");
    check(r#"{"priority":-3}"#, &[("priority", "-3.000")], "");
    check(r#"{"priority":9007199254740993}"#, &[("priority", "9007199254740993")], "");
    check("{}", &[("unknown", "x"), ("unknown", "y")], "");
}

#[test]
fn headers_that_are_missing() {
    let missing = "header Mcp-Param-Region is missing; the body says \"a\"";
    check(r#"{"region":"a"}"#, &[], missing);
    check(r#"{"priority":7}"#, &[], "header Mcp-Param-Priority is missing; the body says \"7\"");
    check(r#"{"verbose":false}"#, &[], "header Mcp-Param-Verbose is missing");
    check(r#"{"filter":{"tenant":"a"}}"#, &[], "header Mcp-Param-Tenant is missing");
    check(r#"{"region":""}"#, &[], "header Mcp-Param-Region is missing");
}

#[test]
fn headers_that_say_something_else() {
    let differs = "header Mcp-Param-Region says \"b\", the body says \"a\"";
    check(r#"{"region":"a"}"#, &[("region", "b")], differs);
    check(r#"{"region":"a"}"#, &[("region", "A")], "header Mcp-Param-Region says");
    check(r#"{"verbose":true}"#, &[("verbose", "True")], "header Mcp-Param-Verbose says");
    check(r#"{"verbose":true}"#, &[("verbose", "1")], "header Mcp-Param-Verbose says");
    for said in ["43", "42.5", "42.", ".0", "4.2e1", "0x2a", "", "42 0", "NaN", "--42"] {
        check(r#"{"priority":42}"#, &[("priority", said)], "header Mcp-Param-Priority says");
    }
    let big = r#"{"priority":9007199254740993}"#;
    check(big, &[("priority", "9007199254740992")], "header Mcp-Param-Priority says");
}

#[test]
fn headers_that_nobody_can_tell() {
    let twice = [("region", "a"), ("region", "a")];
    check(r#"{"region":"a"}"#, &twice, "header Mcp-Param-Region is given more");
    check("{}", &[("region", "a")], "header Mcp-Param-Region says \"a\", the body has nothing");
    check(r#"{"region":null}"#, &[("region", "")], "header Mcp-Param-Region says \"\"");
    check(r#"{"region":["a"]}"#, &[("region", "a")], "header Mcp-Param-Region says");
    check("[]", &[("region", "a")], "header Mcp-Param-Region says");

    let padding = [("region", "=?base64?SGVsbG8?=")];
    check(r#"{"region":"Hello"}"#, &padding, "header Mcp-Param-Region: \"=?base64?SGVsbG8?=\"");
    let alphabet = [("region", "=?base64?SGVs!!!bG8=?=")];
    check(r#"{"region":"Hello"}"#, &alphabet, "header Mcp-Param-Region: ");
    check(r#"{"region":"é"}"#, &[("region", "é")], "header Mcp-Param-Region: \"é\": contains char");
}

#[test]
fn arguments_that_nobody_can_tell() {
    for arguments in [
        r#"{"region":"a","region":"b"}"#,
        r#"{"region":"a","reg\u0069on":"a"}"#,
        r#"{"filter":{"tenant":"a"},"filter":{}}"#,
        r#"{"filter":{"tenant":"a","tenant":null}}"#,
        r#"{"region":"\ud800"}"#,
    ] {
        assert!(mirror().encode(Some(raw(arguments))).is_err(), "{arguments:?}");
        let headers = map(&[("region", "a")]);
        let error = mirror().check(&headers, Some(raw(arguments))).unwrap_err();
        assert!(matches!(error.problem, HeaderProblem::Unclear(_)), "{error}");
    }
    let twice = mirror().encode(Some(raw(r#"{"region":1,"region":2}"#)));
    let message = twice.unwrap_err().to_string();
    assert!(message.starts_with("argument \"region\" appears twice"), "{message}");
}

/// A property with its annotation, if any, and the argument given for it, if any.
#[derive(Debug, Clone)]
enum Property {
    Annotated(&'static str, Option<Value>),
    Plain(Option<Value>),
    Nested(BTreeMap<String, Self>),
}

fn argument() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::from),
        "[ \\t\\ra=?é-]{0,5}".prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-100_i64..100).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!([1])),
        Just(json!({"a": "b"})),
    ]
}

fn properties() -> impl Strategy<Value = BTreeMap<String, Property>> {
    let kind = prop::sample::select(vec!["string", "integer", "boolean"]);
    let leaf = prop_oneof![
        3 => (kind, prop::option::of(argument()))
            .prop_map(|(kind, argument)| Property::Annotated(kind, argument)),
        1 => prop::option::of(argument()).prop_map(Property::Plain),
    ];
    let property = leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::btree_map("[a-c\"\\\\é.]{0,2}", inner, 0..4).prop_map(Property::Nested)
    });
    prop::collection::btree_map("[a-e\"\\\\é.]{0,2}", property, 0..6)
}

/// The schema and the arguments that the properties describe.
fn build(properties: &BTreeMap<String, Property>, count: &mut usize) -> (Value, Value) {
    let (mut schemas, mut arguments) = (json!({}), json!({}));
    for (name, property) in properties {
        let (schema, argument) = match property {
            Property::Annotated(kind, argument) => {
                *count += 1;
                let header = format!("H{count}");
                (json!({"type": kind, "x-mcp-header": header}), argument.clone())
            }
            Property::Plain(argument) => (json!({"type": "string"}), argument.clone()),
            Property::Nested(inner) => {
                let (schema, argument) = build(inner, count);
                (schema, Some(argument))
            }
        };
        schemas[name] = schema;
        if let Some(argument) = argument {
            arguments[name] = argument;
        }
    }
    (json!({"type": "object", "properties": schemas}), arguments)
}

proptest! {
    #[test]
    fn client_and_server_agree(properties in properties()) {
        let mut count = 0;
        let (schema, arguments) = build(&properties, &mut count);
        let mirror = ParamHeaders::parse(&schema).unwrap();
        prop_assert_eq!(mirror.headers.len(), count);
        let arguments = arguments.to_string();
        let arguments = raw(&arguments);
        let encoded = mirror.encode(Some(arguments)).unwrap();
        let headers: HeaderMap = encoded.iter().cloned().collect();
        prop_assert_eq!(headers.len(), encoded.len());
        mirror.check(&headers, Some(arguments)).unwrap();

        // And only these headers will do.
        for (name, value) in encoded {
            let mut fewer = headers.clone();
            fewer.remove(&name);
            prop_assert!(mirror.check(&fewer, Some(arguments)).is_err());
            let mut other = headers.clone();
            let text = format!("{}x", decode_value(&value).unwrap());
            other.insert(&name, encode_value(&text));
            prop_assert!(mirror.check(&other, Some(arguments)).is_err());
            let mut more = headers.clone();
            more.append(&name, value);
            prop_assert!(mirror.check(&more, Some(arguments)).is_err());
            prop_assert!(mirror.check(&headers, None).is_err());
        }
    }
}
