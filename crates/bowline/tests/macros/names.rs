//! Tools may have any name, and so may everything beside them.

use bowline::{Context, Part, Server, Tool, prompt, resource, tool};
use serde_json::json;

use crate::{answer, client_of};

/// A module for each name, with a tool of that name that has a parameter of that name. Beside it
/// are variables of that name, and macros that use such names in what they write.
macro_rules! tools_named {
    ($($name:ident)+) => {$({
        mod named {
            use schemars::JsonSchema;
            use serde::{Deserialize, Serialize};
            use serde_json::json;

            /// Has the name.
            #[bowline::tool]
            async fn $name($name: String) -> String {
                let $name = format!("{}!", $name);
                $name
            }

            /// Has a parameter of that name, of a type that derives what arguments need.
            #[bowline::tool]
            async fn neighbour(
                asked: &bowline::Context,
                $name: Nested,
                #[arg(default = 1)] extra: u8,
            ) -> anyhow::Result<Nested> {
                tracing::info!(extra, name = ?$name, "called");
                let Nested { items, $name } = $name;
                let $name = tokio::select! {
                    biased;
                    $name = async { $name } => $name,
                    () = asked.cancelled() => anyhow::bail!("cancelled"),
                };
                if items.is_empty() {
                    anyhow::bail!("{} has no items", $name);
                }
                Ok(Nested { items, $name })
            }

            /// Blocks a thread.
            #[bowline::tool]
            fn blocking(r#in: Option<Kind>, $name: u8) -> u8 {
                let more = |$name: u8| $name + 1;
                match (r#in, $name) {
                    (Some(Kind::Twice), $name) => more(more($name)),
                    (None, $name) => more($name),
                }
            }

            #[derive(Debug, Deserialize, Serialize, JsonSchema)]
            struct Nested {
                #[serde(default)]
                items: Vec<u8>,
                $name: String,
            }

            #[derive(Debug, Deserialize, JsonSchema)]
            #[serde(rename_all = "lowercase")]
            enum Kind {
                Twice,
            }

            pub(super) async fn check() {
                let wire = stringify!($name).trim_start_matches("r#");
                assert_eq!($name().call("called".to_owned()).await, "called!");
                assert_eq!(blocking().call(None, 1), 2);
                let part = ($name, neighbour, blocking);
                let server = bowline::Server::new("names", "1.0.0").with(part);
                let client = bowline::testing::connect(server).await.unwrap();
                let said = client.call_tool(wire, json!({ wire: "sent" })).text().await;
                assert_eq!(said.unwrap(), "sent!", "{wire}");
                let arguments = json!({ wire: 1, "in": "twice" });
                let said = client.call_tool("blocking", arguments).text().await;
                assert_eq!(said.unwrap(), "3", "{wire}");
                let nested = json!({ "items": [1], wire: "deep" });
                let said = client.call_tool("neighbour", json!({ wire: nested })).text().await;
                assert_eq!(said.unwrap(), nested.to_string(), "{wire}");
                let nested = json!({ wire: { wire: "deep" } });
                let error = client.call_tool("neighbour", nested).text().await.unwrap_err();
                assert!(error.to_string().ends_with("deep has no items"), "{wire}: {error}");
            }
        }
        Box::pin(named::check()).await;
    })+};
}

#[tokio::test]
async fn a_tool_may_have_any_name() {
    tools_named! {
        query schema value map error output start meta context client generator arguments enabled
        this parts url log std core bowline serde tokio r#type caller typed call tool returned name
    }
}

mod elsewhere {
    //! Imported by name, where variables and crates have the same names.

    /// Sleep.
    #[bowline::tool]
    pub(crate) async fn time(seconds: u64) -> u64 {
        seconds
    }

    /// Search.
    #[bowline::tool]
    pub(crate) async fn search(query: String, tool: Option<u8>) -> String {
        format!("{query} {tool:?}")
    }
}

#[tokio::test]
async fn an_import_shadows_neither_variables_nor_types() {
    use elsewhere::{search, time};
    let part = (search, time);
    assert_eq!(time().call(3).await, 3);
    assert_eq!(search().call("x".to_owned(), None).await, "x None");
    let time = std::time::Duration::ZERO;
    let search = |search: u8| search;
    assert_eq!((time.as_secs(), search(1)), (0, 1));
    let client = client_of(part).await;
    assert_eq!(client.call_tool("time", json!({ "seconds": 2 })).text().await.unwrap(), "2");
}

/// A tool.
#[tool]
async fn first() -> &'static str {
    "first"
}

/// A prompt.
#[prompt]
async fn second() -> &'static str {
    "second"
}

/// A resource.
#[resource("test:third")]
async fn third() -> &'static str {
    "third"
}

#[tokio::test]
async fn a_function_gives_its_part_for_the_builder() {
    let renamed = first().tool().title("First");
    let converted = Tool::from(first());
    assert!(format!("{converted:?}").contains("A tool."));
    let server = Server::new("parts", "1.0.0")
        .with(renamed)
        .with(second().prompt().title("Second"))
        .with(third().resource().title("Third"));
    let client = bowline::testing::connect(server).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap()[0].title.as_deref(), Some("First"));
    assert_eq!(client.list_prompts().await.unwrap()[0].title.as_deref(), Some("Second"));
    assert_eq!(client.list_resources().await.unwrap()[0].title.as_deref(), Some("Third"));
}

fn all() -> impl Part {
    (first, vec![second], Some(third))
}

#[tokio::test]
async fn functions_return_parts() {
    for client in [client_of(all).await, client_of(|| (first(), second, third)).await] {
        assert_eq!(client.call_tool("first", json!({})).text().await.unwrap(), "first");
        assert_eq!(client.list_prompts().await.unwrap().len(), 1);
        assert_eq!(client.list_resources().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn tuples_have_up_to_sixteen_parts() {
    let part = |name: &str| Tool::new(name, a);
    let (a, b, c, d) = (part("a"), part("b"), part("c"), part("d"));
    let (e, f, g, h) = (part("e"), part("f"), part("g"), part("h"));
    let (i, j, k, l) = (part("i"), part("j"), part("k"), part("l"));
    let (m, n, o, p) = (part("m"), part("n"), part("o"), part("p"));
    let sixteen = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
    assert_eq!(client_of(sixteen).await.list_tools().await.unwrap().len(), 16);
}

async fn a(context: Context) -> bool {
    context.is_cancelled()
}

#[tokio::test]
async fn a_handler_may_take_the_context_alone() {
    assert_eq!(answer(Tool::new("a", a), "a", json!({})).await, "false");
}
