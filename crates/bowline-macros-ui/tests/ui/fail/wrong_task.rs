//! Modes of tasks that do not exist.

use bowline::tool;

#[tool(task = "always")]
async fn no_mode() {}

#[tool(task(before = "2s"))]
async fn no_entry() {}

#[tool(task(after = "2"))]
async fn no_unit() {}

fn main() {}
