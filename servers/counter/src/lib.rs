//! A counter as a server: tools that change it, a resource and an app that show it, prompts.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline::{App, Completing, Context, Resource, Server, server};

/// The resource with the counter's value.
pub const VALUE_URI: &str = "counter://value";

/// The app: the value, and buttons that change it.
pub const APP_URI: &str = "ui://counter/app";

/// The longest task, in steps of a tenth of a second: one minute.
const MAX_STEPS: u32 = 600;

const STRATEGIES: [&str; 3] = ["careful", "fast", "playful"];

/// Builds the server, with the counter at zero.
pub fn server() -> Server {
    Server::new("counter", env!("CARGO_PKG_VERSION"))
        .title("Counter")
        .description("A counter, plus one of everything else a server can offer")
        .instructions(
            "This server provides a counter tool: change it with increment and decrement, read it \
             with get_value or by subscribing to counter://value. long_task counts slowly, reports \
             its progress and can be cancelled.",
        )
        .with(Counter::default())
        .with(
            Resource::text("str:////Users/to/some/path/", "cwd", "/Users/to/some/path/")
                .title("Working folder")
                .description("A path, as an example of a text that never changes"),
        )
        .with(
            Resource::text(
                "memo://insights",
                "memo-name",
                "Business Intelligence Memo\n\nThe counter goes up, and sometimes down.",
            )
            .title("Insights")
            .description("A memo, as an example of a text that never changes"),
        )
        .with(
            Resource::app(APP_URI, App::new(include_str!("app.html")).prefers_border(true))
                .title("Counter")
                .description("The value, live, with buttons that count up and down"),
        )
}

/// The counter.
#[derive(Debug, Default)]
pub struct Counter {
    value: AtomicI64,
}

impl Counter {
    fn value_now(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    fn add(&self, step: i64, context: &Context) -> Result<i64, String> {
        let added = |value: i64| value.checked_add(step);
        let before = self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        let before = before.map_err(|value| format!("the counter is at {value}, its limit"))?;
        context.registry().resource_updated(VALUE_URI);
        Ok(before + step)
    }
}

#[server]
impl Counter {
    /// Increment the counter by 1
    #[tool(title = "Increment", destructive = false, open_world = false, ui = APP_URI)]
    async fn increment(&self, context: Context) -> Result<i64, String> {
        self.add(1, &context)
    }

    /// Decrement the counter by 1
    #[tool(title = "Decrement", destructive = false, open_world = false, ui = APP_URI)]
    async fn decrement(&self, context: Context) -> Result<i64, String> {
        self.add(-1, &context)
    }

    /// Get the current counter value
    #[tool(title = "Value", read_only, open_world = false, ui = APP_URI)]
    async fn get_value(&self) -> i64 {
        self.value_now()
    }

    /// Say hello to the client
    #[tool(title = "Hello", read_only, idempotent, open_world = false)]
    async fn say_hello(&self) -> &'static str {
        "hello"
    }

    /// Repeat what you say
    #[tool(title = "Echo", read_only, idempotent, open_world = false)]
    async fn echo(
        &self,
        /// What to repeat
        saying: String,
    ) -> String {
        saying
    }

    /// Calculate the sum of two numbers
    #[tool(title = "Sum", read_only, idempotent, open_world = false)]
    async fn sum(
        &self,
        /// The first number
        a: i32,
        /// The second number
        b: i32,
    ) -> i64 {
        i64::from(a) + i64::from(b)
    }

    /// Count up, one step every tenth of a second, and report progress. Can be cancelled; steps
    /// counted until then stay counted. After two seconds it goes on as a task, for clients that
    /// can use one
    #[tool(title = "Long task", destructive = false, open_world = false, task(after = "2s"))]
    async fn long_task(
        &self,
        /// How many steps to count
        #[arg(default = 100)]
        #[schemars(range(min = 1, max = MAX_STEPS))]
        steps: u32,
        context: Context,
    ) -> Result<String, String> {
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let value = self.add(1, &context)?;
            let message = format!("the counter is at {value}");
            context.progress(step.into(), f64::from(steps), &message);
        }
        Ok(format!("counted {steps} steps"))
    }

    /// The current value of the counter
    #[resource("counter://value", name = "value", title = "Value", mime_type = "text/plain")]
    async fn value(&self) -> String {
        self.value_now().to_string()
    }

    /// A prompt that includes a message
    #[prompt(title = "Example")]
    async fn example_prompt(
        &self,
        /// A message to put in the prompt
        message: String,
    ) -> String {
        format!("This is an example prompt with your message here: '{message}'")
    }

    /// Analyze the counter and suggest how to reach a goal
    #[prompt(title = "Counter analysis", complete(strategy = strategies))]
    async fn counter_analysis(
        &self,
        /// The value to reach
        goal: i64,
        /// How to get there: careful, fast, playful, or anything else
        strategy: Option<String>,
    ) -> String {
        let value = self.value_now();
        let strategy = strategy.as_deref().unwrap_or(STRATEGIES[0]);
        format!(
            "The counter is at {value} and should reach {goal}: {} steps to go. \
             Suggest a {strategy} way to get there with increment and decrement.",
            goal.abs_diff(value)
        )
    }
}

async fn strategies(typed: Completing) -> Vec<String> {
    typed.matching(&STRATEGIES)
}
