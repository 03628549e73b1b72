//! What the return values of tools and resources become, in every revision.

use std::collections::BTreeMap;

use bowline::model::ContentBlock;
use bowline::{Described, Resource, Revision, Server, Structured, Tool, resource, testing, tool};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Point {
    x: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: u8 },
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Tree {
    children: Vec<Self>,
}

#[tool]
async fn get_point() -> Point {
    Point { x: 1 }
}

#[tool]
async fn get_points() -> Vec<Point> {
    vec![Point { x: 1 }, Point { x: 2 }]
}

#[tool]
async fn get_words() -> Result<Vec<String>, String> {
    Ok(vec!["a".to_owned()])
}

#[tool]
async fn get_map() -> BTreeMap<String, u8> {
    BTreeMap::from([("a".to_owned(), 1)])
}

#[tool]
async fn get_some() -> Option<Point> {
    Some(Point { x: 1 })
}

#[tool]
async fn get_nothing() -> Option<Point> {
    None
}

#[tool]
async fn get_shape() -> Shape {
    Shape::Circle { radius: 1 }
}

#[tool]
async fn get_forest() -> Vec<Tree> {
    vec![Tree { children: vec![Tree { children: Vec::new() }] }]
}

#[tool]
async fn get_blocks() -> Vec<ContentBlock> {
    vec![ContentBlock::text("a"), ContentBlock::text("b")]
}

#[tool]
async fn get_number() -> u8 {
    7
}

#[tool]
async fn get_described() -> Described<Vec<u8>> {
    Structured(vec![1, 2]).with_text("two numbers")
}

fn server() -> Server {
    Server::new("results", "1.0.0")
        .with((get_point, get_points, get_words, get_map, get_some, get_nothing, get_shape))
        .with((get_forest, get_blocks, get_number, get_described))
        .with(Tool::new("get_scalar", || async { Structured(5) }))
}

/// The structured content, which must match the schema that is listed, and the text.
async fn check(name: &str, plain: Option<Value>, wrapped: Option<Value>, text: &str) {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let tools = client.list_tools().await.unwrap();
        let listed = tools.iter().find(|tool| tool.name == name).unwrap();
        // The client has listed the tools, so it validates.
        let result = client.call_tool(name, json!({})).await.unwrap();
        let expected = match revision {
            Revision::V2026_07_28 => plain.clone(),
            Revision::V2025_06_18 | Revision::V2025_11_25 => wrapped.clone(),
            _ => None,
        };
        let found = result.structured_content.map(|json| json.to_value());
        assert_eq!(found, expected, "{revision}: {name}");
        assert_eq!(listed.output_schema.is_some(), expected.is_some(), "{revision}: {name}");
        let texts: Vec<_> = result.content.iter().filter_map(ContentBlock::as_text).collect();
        assert_eq!(texts.join("\n"), text, "{revision}: {name}");
    }
}

#[tokio::test]
async fn data_is_structured_in_every_revision_that_has_it() {
    let in_result = |value: &Value| Some(json!({ "result": value }));
    let point = json!({ "x": 1 });
    check("get_point", Some(point.clone()), Some(point.clone()), r#"{"x":1}"#).await;
    let points = json!([{ "x": 1 }, { "x": 2 }]);
    check("get_points", Some(points.clone()), in_result(&points), r#"[{"x":1},{"x":2}]"#).await;
    let words = json!(["a"]);
    check("get_words", Some(words.clone()), in_result(&words), r#"["a"]"#).await;
    let map = json!({ "a": 1 });
    check("get_map", Some(map.clone()), Some(map), r#"{"a":1}"#).await;
    // What is not always an object is always wrapped.
    check("get_some", Some(point.clone()), in_result(&point), r#"{"x":1}"#).await;
    check("get_nothing", Some(json!(null)), in_result(&json!(null)), "null").await;
    check("get_scalar", Some(json!(5)), in_result(&json!(5)), "5").await;
    let shape = json!({ "kind": "circle", "radius": 1 });
    check("get_shape", Some(shape.clone()), Some(shape.clone()), &shape.to_string()).await;
    let forest = json!([{ "children": [{ "children": [] }] }]);
    check("get_forest", Some(forest.clone()), in_result(&forest), &forest.to_string()).await;
    let numbers = json!([1, 2]);
    check("get_described", Some(numbers.clone()), in_result(&numbers), "two numbers").await;
    check("get_blocks", None, None, "a\nb").await;
    check("get_number", None, None, "7").await;
}

#[tokio::test]
async fn a_client_reads_its_type_in_either_form() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let points: Vec<Point> =
            client.call_tool("get_points", json!({})).structured().await.unwrap();
        assert_eq!(points.len(), 2, "{revision}");
        let point: Point = client.call_tool("get_point", json!({})).structured().await.unwrap();
        assert_eq!(point, Point { x: 1 });
        let nothing: Option<Point> =
            client.call_tool("get_nothing", json!({})).structured().await.unwrap();
        assert_eq!(nothing, None, "{revision}");
        let error = client.call_tool("get_points", json!({})).structured::<Point>().await;
        assert!(error.is_err(), "{revision}");
    }
}

#[resource("it://words/{id}")]
async fn stored_word(id: u8) -> Option<String> {
    (id == 1).then(|| "one".to_owned())
}

#[resource("it://points/{x}")]
async fn stored_point(x: i64) -> Result<Option<Point>, String> {
    match x {
        1 => Ok(Some(Point { x })),
        2 => Ok(None),
        _ => Err("broken".to_owned()),
    }
}

#[tokio::test]
async fn a_resource_that_is_none_is_not_found() {
    let plain = Resource::new("it://none", "none", || async { None::<String> });
    let server = || Server::new("none", "1.0.0").with((stored_word, stored_point));
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let read = |uri: &str| client.read_resource(uri);
        let found = read("it://words/1").await.unwrap();
        assert_eq!(found.contents[0].as_text(), Some("one"), "{revision}");
        let found = read("it://points/1").await.unwrap();
        assert_eq!(found.contents[0].as_text(), Some("{\n  \"x\": 1\n}"), "{revision}");
        for uri in ["it://words/2", "it://points/2"] {
            let error = read(uri).await.unwrap_err().to_string();
            assert!(error.contains(&format!("unknown resource {uri}")), "{revision}: {error}");
        }
        let error = read("it://points/3").await.unwrap_err().to_string();
        assert!(error.contains("broken"), "{revision}: {error}");
    }
    let client = testing::connect(Server::new("none", "1.0.0").with(plain)).await.unwrap();
    assert!(client.read_resource("it://none").await.is_err());
}
