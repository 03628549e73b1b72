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
mod task;
mod template;

use proc_macro::TokenStream;

use self::options::Kind;

/// Turns a function into a tool: `Server::new("…", "…").with(greet)`.
///
/// ```
/// use bowline::{Server, tool};
///
/// /// Greet someone.
/// #[tool(read_only)]
/// async fn greet(
///     /// Whom to greet.
///     name: String,
///     /// How often.
///     #[arg(default = 1)]
///     times: usize,
/// ) -> String {
///     format!("Hello, {name}! ").repeat(times)
/// }
///
/// let server = Server::new("hello", "1.0.0").with(greet);
/// ```
///
/// The doc comment is the description, the parameters are the arguments, and their doc comments
/// describe them. Callers may omit `Option` arguments; arguments that are not parameters are
/// rejected. Functions that are not `async` run on a thread where they may block.
///
/// # The function afterwards
///
/// `greet` becomes a function without parameters, and what it returns stands for the tool:
///
/// | expression | meaning |
/// |---|---|
/// | `server.with(greet)` | adds the tool |
/// | `greet().call("Bob".into(), 1).await` | calls the function itself, in a test or from another function |
/// | `greet().tool()`, `Tool::from(greet())` | the `Tool`, for more settings: `greet().tool().title("…")` |
///
/// So its name may be any name: variables, parameters, types and crates can have it too.
///
/// # Options
///
/// Each is named for the method of `Tool` that it calls.
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | a name other than the function's |
/// | `title = "…"` | the name people see |
/// | `description = "…"` | replaces the doc comment |
/// | `read_only`, `idempotent` | it changes nothing; calling it twice is the same as once |
/// | `destructive = true`, `open_world = false` | whether it may destroy data; whether it reaches the outside world |
/// | `annotations = …` | a `ToolAnnotations`, which the four above amend |
/// | `lenient` | accepts JSON inside strings (`"5"`, `"[1, 2]"`), and ignores unknown arguments |
/// | `ui = "ui://…"` | the app that shows its results |
/// | `app_only`, `model_only` | for apps and not for the model, or the reverse |
/// | `timeout = "30s"` | how long one call may run; text with `ms`, `s`, `m` or `h`, or a `Duration` |
/// | `task`, `task = "required"`, `task = "on_demand"`, `task(after = "2s")` | a call may go on as a task: at once, only so, when its handler says so, if it takes longer |
/// | `rerun` | a task runs again if its server ended while it ran |
/// | `icon = "https://…"` | an icon, by its URL or as an `Icon`; may be repeated |
/// | `scopes = ["a", "b"]` | the scopes that a caller's token must have |
/// | `visible_to = rule` | a function or closure that decides by the `&Caller`; others do not see it |
/// | `meta(key = value, "a.b/c" = value)` | members of `_meta`; values are anything that is `Serialize` |
/// | `input_schema = …`, `output_schema = …` | replace the schemas of the arguments and of the result |
/// | `disabled` | hidden until the registry enables it |
/// | `crate = path` | where the `bowline` crate is, if not at `::bowline` |
///
/// # Parameters
///
/// | parameter | meaning |
/// |---|---|
/// | `name: T` | an argument; `T` derives `bowline::serde::Deserialize` and `bowline::schemars::JsonSchema` |
/// | `#[arg(default)]`, `#[arg(default = …)]` | callers may omit it |
/// | `#[arg(rename = "…")]` | another name for clients |
/// | `#[arg(description = "…")]` | replaces the doc comment |
/// | `#[serde(…)]`, `#[schemars(…)]` | as on the field of a struct |
/// | `#[args] all: T` | all arguments in one struct |
/// | `context: Context`, `context: &Context` | the request: reports progress, logs, asks the client |
/// | `database: State<T>` | a value that `Server::state` added; a server that lacks it is not built |
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
/// ```
/// use bowline::{Completing, prompt};
///
/// /// Review some code.
/// #[prompt(complete(language = languages))]
/// async fn review(code: String, language: Option<String>) -> String {
///     format!("Please review this {} code:\n\n{code}", language.unwrap_or_default())
/// }
///
/// async fn languages(typed: Completing) -> Vec<String> {
///     typed.matching(&["rust", "c"])
/// }
/// ```
///
/// The protocol sends arguments as text; they are parsed into the type of the parameter. The result
/// is a `PromptOutput`: text, messages, or a `Result` of either. `review().prompt()` is the
/// `Prompt`.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `complete(argument = function, …)` | suggests values; the function is `async` and takes a `Completing` |
/// | `name`, `title`, `description`, `icon`, `scopes`, `visible_to`, `meta`, `disabled`, `crate` | as for [`macro@tool`] |
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Prompt, options.into(), &item.into()).into()
}

/// Turns a function into a resource or a resource template, as [`macro@tool`] turns one into a
/// tool.
///
/// ```
/// use bowline::{HandlerError, resource};
///
/// /// One user.
/// #[resource("users://{id}", mime_type = "text/plain")]
/// async fn user(id: u64) -> Result<String, HandlerError> {
///     match id {
///         1 => Ok("Ada".to_owned()),
///         _ => Err(HandlerError::resource_not_found(&format!("users://{id}"))),
///     }
/// }
/// ```
///
/// The variables in braces (RFC 6570) are the parameters, by name. The result is a
/// `ResourceOutput`: text, bytes or contents; any other `Serialize` type, which is sent as JSON; an
/// `Option` of either, whose `None` is answered with "not found"; or a `Result`.
/// `user().resource()` is the `Resource`.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `mime_type = "…"`, `size = 1024` | what it contains, and how many bytes |
/// | `annotations = …` | an `Annotations`: audience and priority |
/// | `complete(variable = function, …)` | suggests values; the function is `async` and takes a `Completing` |
/// | `allow_unsafe_values` | allows `..` and slashes in variables |
/// | `name`, `title`, `description`, `icon`, `scopes`, `visible_to`, `meta`, `disabled`, `crate` | as for [`macro@tool`] |
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Resource, options.into(), &item.into()).into()
}

/// Turns a type into a part of a server: every method of an `impl` block that is marked with
/// `#[tool]`, `#[prompt]` or `#[resource("…")]`.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use bowline::{Server, server};
///
/// #[derive(Default)]
/// struct Counter {
///     count: AtomicU64,
/// }
///
/// #[server]
/// impl Counter {
///     /// Count one more.
///     #[tool]
///     async fn increment(&self) -> u64 {
///         self.count.fetch_add(1, Ordering::Relaxed) + 1
///     }
/// }
///
/// let server = Server::new("counter", "1.0.0").with(Counter::default());
/// ```
///
/// The attributes have the same options as on functions. Where an option takes a function, it may
/// be a method of the value: `complete(language = self.languages)` calls
/// `async fn languages(&self, typed: Completing) -> Vec<String>`, and `visible_to = self.admits`
/// calls `fn admits(&self, caller: &Caller) -> bool`.
///
/// The methods stay as they are. All calls share one value, so the type must be `Send`, `Sync` and
/// `'static`, and methods take `&self` (or nothing); state that changes belongs in a `Mutex`, an
/// atomic or the like. An `Arc` of the type can be added as well. Only one `impl` block of a type
/// can be marked.
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    group::expand(options.into(), &item.into()).into()
}
