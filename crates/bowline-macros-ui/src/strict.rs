//! Nothing that the attributes write is worth a warning, under a strict regime and without imports.
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, elided_lifetimes_in_paths)]
#![deny(clippy::all, clippy::pedantic)]

/// A type with the name of something we write.
#[derive(Debug)]
pub struct Arguments;

/// Everything is here.
#[bowline::tool(read_only)]
pub async fn search(text: String, #[arg(default = 10)] limit: u32) -> Result<String, String> {
    Ok(format!("{text} {limit} {Arguments:?}"))
}

/// A type.
#[derive(Debug, Clone, Copy)]
pub struct Service;

#[bowline::server]
impl Service {
    /// Nothing is here.
    #[tool]
    pub fn nothing(&self) {}

    /// So is nothing here.
    #[resource("text:{of}")]
    pub async fn text(of: String) -> usize {
        of.len()
    }
}

/// All of the above.
pub fn server() -> bowline::Server {
    bowline::Server::new("strict", "1.0.0").with(search).with(Service)
}
