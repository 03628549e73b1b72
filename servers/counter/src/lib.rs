//! A counter, as a server: tools that change it, a resource that tells it, prompts about it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline::{Context, Resource, Server, server};

/// Where the counter's value can be read and subscribed to.
pub const VALUE_URI: &str = "counter://value";

/// The server, its counter at zero.
pub fn server() -> Server {
    Server::new("counter", env!("CARGO_PKG_VERSION"))
        .title("Counter")
        .instructions(
            "A counter. Change it with increment and decrement, read it with get_value or by \
             subscribing to counter://value.",
        )
        .with(Counter::default())
        .with(Resource::text("str:////Users/to/some/path/", "cwd", "/Users/to/some/path/"))
        .with(Resource::text(
            "memo://insights",
            "memo-name",
            "Business Intelligence Memo\n\nThe counter goes up, and sometimes down.",
        ))
}

/// The counter.
#[derive(Debug, Default)]
pub struct Counter {
    value: AtomicI64,
}

impl Counter {
    fn add(&self, step: i64, context: &Context) -> i64 {
        let value = self.value.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        context.registry().resource_updated(VALUE_URI);
        value
    }
}

#[server]
impl Counter {
    /// Increment the counter by 1
    #[tool(destructive = false)]
    async fn increment(&self, context: Context) -> i64 {
        self.add(1, &context)
    }

    /// Decrement the counter by 1
    #[tool(destructive = false)]
    async fn decrement(&self, context: Context) -> i64 {
        self.add(-1, &context)
    }

    /// Get the current counter value
    #[tool(read_only)]
    async fn get_value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Say hello to the client
    #[tool(read_only)]
    async fn say_hello(&self) -> &'static str {
        "hello"
    }

    /// Repeat what you say
    #[tool(read_only)]
    async fn echo(
        &self,
        /// What to repeat
        saying: String,
    ) -> String {
        saying
    }

    /// Calculate the sum of two numbers
    #[tool(read_only, idempotent)]
    async fn sum(
        &self,
        /// The first number
        a: i32,
        /// The second number
        b: i32,
    ) -> i64 {
        i64::from(a) + i64::from(b)
    }

    /// Count up to a number, one step every tenth of a second, telling how far it is
    #[tool(destructive = false)]
    async fn long_task(
        &self,
        /// How far to count
        #[arg(default = 100)]
        steps: u32,
        context: Context,
    ) -> String {
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.add(1, &context);
            context.progress(step.into(), f64::from(steps), "counting");
        }
        format!("counted {steps} steps")
    }

    /// The counter's value, as it is now
    #[resource("counter://value", name = "value", mime_type = "text/plain")]
    async fn value(&self) -> String {
        self.value.load(Ordering::Relaxed).to_string()
    }

    /// A prompt that passes a message on
    #[prompt]
    async fn example_prompt(
        &self,
        /// A message to put in the prompt
        message: String,
    ) -> String {
        format!("This is an example prompt with your message here: '{message}'")
    }

    /// Analyse the counter and suggest how to reach a goal
    #[prompt]
    async fn counter_analysis(
        &self,
        /// The value to reach
        goal: i64,
        /// How to get there, such as fast or careful
        strategy: Option<String>,
    ) -> String {
        let value = self.value.load(Ordering::Relaxed);
        let strategy = strategy.unwrap_or_else(|| "careful".to_owned());
        format!(
            "The counter stands at {value} and should reach {goal}: {} steps to go. \
             Suggest a {strategy} way to get there with increment and decrement.",
            goal.abs_diff(value)
        )
    }
}
