//! A server with an extension of its own. `receipts` serves on stdio, `receipts --http ADDRESS`
//! over HTTP.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let server = bowline_examples::receipts::shop();
    match words[..] {
        [] => server.serve_stdio().await?,
        ["--http", address] => server.serve_http(address).await?,
        _ => anyhow::bail!("usage: receipts [--http ADDRESS]"),
    }
    Ok(())
}
