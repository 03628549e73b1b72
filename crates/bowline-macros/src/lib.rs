//! Attributes that turn functions into tools, prompts and resources of an MCP server.
//!
//! They expand to what you could write by hand with the builders of the `bowline` crate, which
//! re-exports them. The generated code refers to `::bowline` only.

mod build;
mod callback;
mod doc;
mod duration;
mod function;
mod group;
mod options;
mod parameter;
mod signature;
mod template;

use proc_macro::TokenStream;

use self::options::Kind;

/// Turns a function into a tool: `Server::new("…", "…").with(greet)`.
///
/// ```ignore
/// /// Greet someone.
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
/// describe them. Callers may omit `Option` arguments. Functions that are not `async` run on a
/// thread where they may block. The function becomes a value of the same name, which a test calls
/// with `greet.call("Bob".into(), 1).await`; no local variable can have that name in its scope.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | a name other than the function's |
/// | `title = "…"` | the name people see |
/// | `description = "…"` | replaces the doc comment |
/// | `read_only`, `idempotent` | it changes nothing; calling it twice is the same as once |
/// | `destructive = true`, `open_world = false` | whether it may destroy data; whether it reaches the outside world |
/// | `timeout_secs = 30` | how long one call may run |
/// | `icon = "https://…"` | an icon; may be repeated |
/// | `scopes = ["a", "b"]` | the scopes that a caller's token must have |
/// | `disabled` | hidden until the registry enables it |
/// | `crate = path` | where the `bowline` crate is, if not at `::bowline` |
///
/// # Parameters
///
/// | parameter | meaning |
/// |---|---|
/// | `name: T` | an argument; `T` is `Deserialize` and `JsonSchema` |
/// | `#[arg(default)]`, `#[arg(default = …)]` | callers may omit it |
/// | `#[arg(rename = "…")]` | another name for clients |
/// | `#[arg(description = "…")]` | replaces the doc comment |
/// | `#[serde(…)]`, `#[schemars(…)]` | as on the field of a struct |
/// | `#[args] all: T` | all arguments in one struct |
/// | `context: Context`, `context: &Context` | the request: reports progress, logs, asks the client |
///
/// # Result
///
/// Any `ToolOutput`; any other type that is `Serialize` and `JsonSchema`, which becomes structured
/// content with a schema; or a `Result` of either, whose error the model reads.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Tool, options.into(), &item.into()).into()
}

/// Turns a function into a prompt, as [`macro@tool`] turns one into a tool.
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
/// Options: `name`, `title`, `description`, `icon`, `scopes`, `disabled`, `crate`, and
/// `complete(argument = function, …)`, where the function is `async` and takes a `Completing`. The
/// protocol sends arguments as text; they are parsed into the type of the parameter. The result is
/// a `PromptOutput`: text, messages, or a `Result` of either.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Prompt, options.into(), &item.into()).into()
}

/// Turns a function into a resource or a resource template, as [`macro@tool`] turns one into a
/// tool.
///
/// ```ignore
/// /// One user.
/// #[resource("users://{id}", mime_type = "application/json")]
/// async fn user(id: u64) -> Result<User, NotFound> {
///     find(id).await
/// }
/// ```
///
/// The variables in braces (RFC 6570) are the parameters, by name. Options: `name`, `title`,
/// `description`, `mime_type`, `icon`, `scopes`, `disabled`, `allow_unsafe_values`,
/// `complete(variable = function, …)`, `crate`. The result is a `ResourceOutput`: text, bytes or
/// contents; any other `Serialize` type, which is sent as JSON; or a `Result` of either.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Resource, options.into(), &item.into()).into()
}

/// Turns a type into a part of a server: every method of an `impl` block that is marked with
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
/// The methods stay as they are. All calls share one value, so the type must be `Send`, `Sync` and
/// `'static`, and methods take `&self` (or nothing); state that changes belongs in a `Mutex`, an
/// atomic or the like. An `Arc` of the type can be added as well. Only one `impl` block of a type
/// can be marked.
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    group::expand(options.into(), &item.into()).into()
}
