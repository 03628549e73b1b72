//! A terminal far from any browser: the address is shown, the result is pasted.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;

use super::{AuthorizationUrl, Login, LoginError, Redirected, Visit, Waiting};
use crate::client::secret::Secret;

/// Shows the address on standard error and reads what the person pastes from standard input: the
/// address of the page that they came out at, or the code on it.
#[derive(Clone)]
pub struct Paste {
    redirect: Arc<str>,
    ask: Arc<Ask>,
}

type Ask = dyn Fn(&str) -> io::Result<String> + Send + Sync;

/// The most bytes of a line that somebody pastes.
const MAX_LINE: u64 = 64 * 1024;

impl Paste {
    /// Comes back to `http://127.0.0.1:1/callback`, where nothing is: the browser shows an error
    /// page, whose address is what to paste.
    pub fn new() -> Self {
        Self::at("http://127.0.0.1:1/callback")
    }

    /// Comes back to a page that shows its address or a code.
    pub fn at(redirect: impl Into<Arc<str>>) -> Self {
        Self { redirect: redirect.into(), ask: Arc::new(ask_on_terminal) }
    }

    /// Asks with this function instead, which is given the question and gives back a line. It may
    /// block.
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
                "To log in, open this address:\n\n  {}\n\nThen paste the address of the page that \
                 you came out at, or the code on it: ",
                page.as_str()
            );
            let (sender, answer) = tokio::sync::oneshot::channel();
            // A thread of its own: a read of a terminal cannot be called off, and the runtime
            // would wait for it at its end.
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
