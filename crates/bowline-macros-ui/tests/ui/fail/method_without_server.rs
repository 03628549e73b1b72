//! A method outside of `#[server]`.

use bowline::tool;

struct Counter;

impl Counter {
    #[tool]
    async fn add(&self, amount: u64) -> u64 {
        amount
    }
}

fn main() {}
