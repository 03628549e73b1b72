//! Attributes that turn functions into tools, prompts and resources of an MCP server.
//!
//! They write what one could write by hand with the builders of the `bowline` crate, which exports
//! them; nothing here is needed to use it. The code that they write refers to `::bowline` only.

mod build;
mod doc;
mod function;
mod group;
mod options;
mod parameter;
mod signature;
mod template;

use proc_macro::TokenStream;

use self::options::Kind;

/// Makes a tool of a function: `Server::new("…", "…").with(greet)`.
///
/// ```ignore
/// /// Greet somebody.
/// #[tool(read_only)]
/// async fn greet(
///     /// Whom to greet.
///     name: String,
///     /// How often.
///     #[arg(default = 1)]
///     times: u32,
/// ) -> String {
///     format!("Hello, {name}! ").repeat(times as usize)
/// }
/// ```
///
/// The doc comment is the description, the parameters are the arguments, and their doc comments
/// describe them. `Option` arguments can be left out. Functions that are not `async` run where they
/// block nobody. The function becomes a value of the same name, which a test calls with
/// `greet.call("Bob".into(), 1).await`; a variable of that name cannot be declared beside it.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | another name than the function's |
/// | `title = "…"` | the name people see |
/// | `description = "…"` | instead of the doc comment |
/// | `read_only`, `idempotent` | it changes nothing; twice is the same as once |
/// | `destructive = true`, `open_world = false` | whether it may destroy, whether it reaches out |
/// | `timeout_secs = 30` | for how long one call may run |
/// | `icon = "https://…"` | a picture; several are allowed |
/// | `disabled` | left out until the registry enables it |
/// | `crate = path` | where the `bowline` crate is, if not at `::bowline` |
///
/// # Parameters
///
/// | parameter | meaning |
/// |---|---|
/// | `name: T` | an argument; `T` is `Deserialize` and `JsonSchema` |
/// | `#[arg(default)]`, `#[arg(default = …)]` | may be left out |
/// | `#[arg(rename = "…")]` | another name for clients |
/// | `#[arg(description = "…")]` | instead of the doc comment |
/// | `#[serde(…)]`, `#[schemars(…)]` | as on the field of a struct |
/// | `#[args] all: T` | all arguments in one struct |
/// | `context: Context`, `context: &Context` | the request, to report, log and ask |
///
/// # Result
///
/// Whatever is a `ToolOutput`; any other type that is `Serialize` and `JsonSchema` becomes
/// structured content with a schema; and a `Result` of either, whose error the model reads.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Tool, options.into(), &item.into()).into()
}

/// Makes a prompt of a function, the same way as [`macro@tool`] makes a tool.
///
/// ```ignore
/// /// Review some code.
/// #[prompt(complete(language = languages))]
/// async fn review(code: String, language: Option<String>) -> String {
///     format!("Please review this {} code:\n\n{code}", language.unwrap_or_default())
/// }
///
/// async fn languages(typed: Completing) -> Vec<String> {
///     typed.among(&["rust", "c"])
/// }
/// ```
///
/// Options: `name`, `title`, `description`, `icon`, `disabled`, `crate`, and `complete(argument =
/// function, …)`, where the function is `async` and takes a `Completing`. The protocol sends
/// arguments as text; they are read as whatever type the parameter has. The result is a
/// `PromptOutput`: text, messages, or a `Result` of them.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Prompt, options.into(), &item.into()).into()
}

/// Makes a resource of a function, or a family of them, as [`macro@tool`] makes a tool.
///
/// ```ignore
/// /// One user.
/// #[resource("users://{id}", mime_type = "application/json")]
/// async fn user(id: u64) -> Result<User, NotFound> {
///     find(id).await
/// }
/// ```
///
/// The parts in braces (RFC 6570) are the parameters, by name. Options: `name`, `title`,
/// `description`, `mime_type`, `icon`, `disabled`, `allow_unsafe_values`, `complete(part =
/// function, …)`, `crate`. The result is a `ResourceOutput`: text, bytes, contents; any other
/// `Serialize` type is sent as JSON; and a `Result` of either.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Resource, options.into(), &item.into()).into()
}

/// Makes a part of a server of a type: all methods of an `impl` block that are marked with
/// `#[tool]`, `#[prompt]` or `#[resource("…")]`.
///
/// ```ignore
/// #[server]
/// impl Counter {
///     /// Count one more.
///     #[tool]
///     async fn increment(&self) -> u64 {
///         self.count.fetch_add(1, Ordering::Relaxed) + 1
///     }
/// }
///
/// Server::new("counter", "1.0.0").with(Counter::default())
/// ```
///
/// The methods stay as they are. The value is shared between all calls, so the type is `Send`,
/// `Sync` and `'static`, and methods take `&self` (or nothing); what changes sits in a `Mutex` or
/// the like. An `Arc` of the type can be added as well. One `impl` block of a type can be marked.
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    group::expand(options.into(), &item.into()).into()
}
