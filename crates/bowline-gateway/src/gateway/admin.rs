//! The admin socket: a question and its answer, one line of JSON each, for the gateway's own user.

#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "ask")]
pub enum Question {
    /// How everything is.
    Status,
    /// Read the configuration again.
    Reload,
    /// Finish what runs, and end.
    Drain,
    /// What the rules say.
    Explain {
        /// The user.
        subject: Option<String>,
        /// Their groups.
        #[serde(default)]
        groups: Vec<String>,
        /// The client program that their token names.
        #[serde(default)]
        client: Option<String>,
        /// The tool.
        tool: String,
    },
}

/// Answers questions.
pub type Answer = Arc<
    dyn Fn(Question) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send>> + Send + Sync,
>;

/// How long to wait before another connection is accepted, after one could not be.
pub(super) const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// The most bytes of a question.
#[cfg(unix)]
const LONGEST: u64 = 64 << 10;

/// Answers on a socket that only this user can open, until the future is dropped. The socket that a
/// process has left behind is replaced; anything else at the path is not.
///
/// # Errors
/// When the socket cannot be opened, or another gateway answers there.
#[cfg(unix)]
pub async fn serve(path: &Path, answer: Answer) -> io::Result<()> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    if tokio::net::UnixStream::connect(path).await.is_ok() {
        let what = "another gateway uses this socket";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            let what = "a file that is not a socket is there; help: choose another path";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Err(_) => {}
    }
    let listener = tokio::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                match accepted {
                    Ok((stream, _)) => drop(tasks.spawn(talk(stream, Arc::clone(&answer)))),
                    // Too many open files: that passes.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

#[cfg(unix)]
async fn talk(stream: tokio::net::UnixStream, answer: Answer) -> io::Result<()> {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    let (input, mut output) = stream.into_split();
    let mut line = String::new();
    BufReader::new(input.take(LONGEST)).read_line(&mut line).await?;
    let answered = match serde_json::from_str(&line) {
        Ok(question) => answer(question).await,
        Err(error) => Err(format!("not a question: {error}")),
    };
    let reply = match answered {
        Ok(value) => serde_json::json!({ "ok": value }),
        Err(why) => serde_json::json!({ "error": why }),
    };
    output.write_all(format!("{reply}\n").as_bytes()).await
}

/// Asks a gateway.
///
/// # Errors
/// When none answers; or in the gateway's own words.
#[cfg(unix)]
pub async fn ask(path: &Path, question: &Question) -> io::Result<Result<Value, String>> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::UnixStream::connect(path).await?;
    stream.write_all((serde_json::to_string(question)? + "\n").as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    let mut reply: Value = serde_json::from_str(&reply)?;
    if let Some(why) = reply.get("error").and_then(Value::as_str) {
        return Ok(Err(why.to_owned()));
    }
    Ok(Ok(reply["ok"].take()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_a_socket_stays() {
        let path = std::env::temp_dir().join(format!("bowline-admin-{}", std::process::id()));
        std::fs::write(&path, "precious").unwrap();
        let answer: Answer = Arc::new(|_| Box::pin(async { Ok(Value::Null) }));
        let error = serve(&path, answer).await.unwrap_err();
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
    }
}
