//! What the child does, by name.

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use bowline::stdio::stdio;
use bowline::{Limits, Server, Tool};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub(super) fn play(role: &str) {
    // Still buffered when `stdio` is called: stray output, like what follows.
    print!("early,");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role {
            "echo" => echo().await,
            "stray" => stray().await,
            "shout" => shout().await,
            "twice" => twice(),
            "serve" => serve().await,
            _ => panic!("no such role: {role}"),
        }
    });
}

async fn echo() {
    let (mut input, mut output) = stdio().unwrap();
    let threads = threads();
    let mut buffer = vec![0; 8192];
    loop {
        let length = input.read(&mut buffer).await.unwrap();
        if length == 0 {
            break;
        }
        output.write_all(&buffer[..length]).await.unwrap();
        output.flush().await.unwrap();
    }
    output.shutdown().await.unwrap();
    eprintln!("{threads} threads");
}

async fn stray() {
    let (_input, mut output) = stdio().unwrap();
    println!("stray");
    // It would wait for ever if it still had the protocol's input.
    let status = Command::new("sh").args(["-c", "cat; echo child"]).status().unwrap();
    assert!(status.success());
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    output.write_all(b"protocol\n").await.unwrap();
    output.flush().await.unwrap();
}

async fn shout() {
    let (_input, mut output) = stdio().unwrap();
    loop {
        let mut result = output.write_all(&[b'x'; 4096]).await;
        if result.is_ok() {
            result = output.flush().await;
        }
        if let Err(error) = result {
            eprintln!("{:?}", error.kind());
            return;
        }
    }
}

fn twice() {
    let _streams = stdio().unwrap();
    eprintln!("{}", stdio().unwrap_err());
}

async fn serve() {
    let limits = Limits { grace: Duration::from_secs(3_600), ..Limits::default() };
    let wait = Tool::new("wait", || tokio::time::sleep(Duration::from_secs(3_600)));
    Server::new("waits", "1.0.0").limits(limits).with(wait).serve_stdio().await.unwrap();
}

/// The number of threads of this process; one if it is unknown.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
