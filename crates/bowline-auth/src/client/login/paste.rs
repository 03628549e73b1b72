//! A terminal without a browser: prints the URL, and the user pastes the result.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;

use super::{AuthorizationUrl, Login, LoginError, Redirected, Visit, Waiting};
use crate::client::secret::Secret;

/// Prints the URL on standard error, and reads from standard input what the user pastes: the URL of
/// the page after the login, or the code on it.
#[derive(Clone)]
pub struct Paste {
    redirect: Arc<str>,
    ask: Arc<Ask>,
}

type Ask = dyn Fn(&str) -> io::Result<String> + Send + Sync;

/// The most bytes in a pasted line.
const MAX_LINE: u64 = 64 * 1024;

impl Paste {
    /// Redirects to `http://127.0.0.1:1/callback`, where nothing listens: the browser shows an error
    /// page, whose URL the user pastes.
    pub fn new() -> Self {
        Self::at("http://127.0.0.1:1/callback")
    }

    /// Redirects to a page that shows its URL or a code.
    pub fn at(redirect: impl Into<Arc<str>>) -> Self {
        Self { redirect: redirect.into(), ask: Arc::new(ask_on_terminal) }
    }

    /// Asks with this function instead, which takes the question and returns a line. It may block.
    #[must_use]
    pub fn ask(mut self, ask: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> Self {
        self.ask = Arc::new(ask);
        self
    }
}

impl Default for Paste {
    fn default() -> Self {
        Self::new()
    }
}

impl Login for Paste {
    fn begin(&self) -> Waiting<'_, Box<dyn Visit>> {
        let visit = Box::new(self.clone()) as Box<dyn Visit>;
        Box::pin(async move { Ok(visit) })
    }
}

impl Visit for Paste {
    fn redirect_uri(&self) -> &str {
        &self.redirect
    }

    fn finish(self: Box<Self>, page: AuthorizationUrl) -> Waiting<'static, Redirected> {
        Box::pin(async move {
            let question = format!(
                "To log in, open this URL:\n\n  {}\n\nThen paste the URL of the page after the \
                 login, or the code on it: ",
                page.as_str()
            );
            let (sender, answer) = tokio::sync::oneshot::channel();
            // A detached thread: reading from a terminal cannot be cancelled, and the runtime would
            // wait for it on shutdown.
            std::thread::spawn(move || drop(sender.send((self.ask)(&question))));
            let line = answer.await.map_err(|_| LoginError::from("nothing was pasted"))??;
            Ok(read(line.trim()))
        })
    }
}

fn read(line: &str) -> Redirected {
    if line.contains('?') || line.contains("code=") || line.contains("error=") {
        Redirected::at(line)
    } else {
        Redirected::Code(Secret::new(line))
    }
}

fn ask_on_terminal(question: &str) -> io::Result<String> {
    io::stderr().write_all(question.as_bytes())?;
    let mut line = String::new();
    BufReader::new(io::stdin().take(MAX_LINE)).read_line(&mut line)?;
    Ok(line)
}

impl fmt::Debug for Paste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paste").field("redirect", &self.redirect).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_paste() {
        fn check(line: &str, expected: Result<&str, &str>) {
            match (read(line), expected) {
                (Redirected::Query(query), Ok(expected)) => assert_eq!(query, expected),
                (Redirected::Code(code), Err(expected)) => assert_eq!(code.expose(), expected),
                (seen, _) => panic!("{line}: {seen:?}"),
            }
        }
        check("http://127.0.0.1:1/callback?code=a&state=b#x", Ok("code=a&state=b"));
        check("code=a&state=b", Ok("code=a&state=b"));
        check("error=access_denied&state=b", Ok("error=access_denied&state=b"));
        check("4/0AY0e-g7", Err("4/0AY0e-g7"));
        check("", Err(""));
    }
}
