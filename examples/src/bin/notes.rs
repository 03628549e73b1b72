//! The notes server. `notes [FILE]` serves on stdio, `notes [FILE] --http ADDRESS` over HTTP.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let address = words.iter().position(|word| word == "--http").map(|at| words.split_off(at));
    let server = bowline_examples::notes(words.first().map_or(":memory:", String::as_str))?;
    match address.as_deref() {
        None => server.serve_stdio().await?,
        Some([_, address]) => server.serve_http(address).await?,
        Some(_) => anyhow::bail!("usage: notes [FILE] [--http ADDRESS]"),
    }
    Ok(())
}
