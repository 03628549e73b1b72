//! The counter on standard input and output.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), bowline::ServeError> {
    counter::server().serve_stdio().await
}
