//! Taps that run on this machine: found in the hub, and watched line by line.

use bowline_gateway::hub;
use serde_json::{Value, json};

#[cfg(unix)]
pub(super) use self::watched::Tap;

/// The taps of this user.
pub(super) fn running() -> Vec<Value> {
    let found = hub::running(&hub::folder()).unwrap_or_default();
    found.iter().map(|path| json!({ "path": path.to_string_lossy() })).collect()
}

#[cfg(unix)]
mod watched {
    use std::io::BufRead;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex, PoisonError};

    use bowline_gateway::hub;
    use bowline_inspector::{Feed, Keep};
    use serde_json::json;

    /// A tap that is watched, by a thread of its own.
    pub(in super::super) struct Tap {
        stream: UnixStream,
        /// Whether anyone wants to hear of it. Held while something is published, so that nothing
        /// is after [`close`](Self::close).
        is_open: Arc<Mutex<bool>>,
    }

    impl Tap {
        /// Publishes what a tap sees, until either side ends.
        pub(in super::super) fn watch(
            path: &str,
            number: u64,
            feed: &Feed,
        ) -> Result<Self, String> {
            let known = hub::running(&hub::folder()).map_err(|error| error.to_string())?;
            // Only a tap: the page does not choose which sockets are opened.
            let path = known.into_iter().find(|it| it.to_string_lossy() == path);
            let path = path.ok_or("this tap does not run any more")?;
            let stream = hub::connect(&path).map_err(|error| error.to_string())?;
            let stream = stream.ok_or("this tap does not run any more")?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Self::follow(stream, &format!("tap {name}"), number, feed)
        }

        fn follow(
            stream: UnixStream,
            name: &str,
            number: u64,
            feed: &Feed,
        ) -> Result<Self, String> {
            let lines = stream.try_clone().map_err(|error| error.to_string())?;
            let is_open = Arc::new(Mutex::new(true));
            let (wanted, feed, name) = (Arc::clone(&is_open), feed.clone(), name.to_owned());
            let publish = move |keep: Keep<'_>, event: &serde_json::Value| {
                let wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
                if *wanted {
                    feed.publish(keep, event);
                }
                *wanted
            };
            std::thread::spawn(move || {
                let key = format!("c{number}/state");
                let state = |state: &str| {
                    json!({
                        "event": "connection", "connection": number, "state": state,
                        "about": name, "name": name, "isTap": true,
                    })
                };
                publish(Keep::As(&key), &state("open"));
                let lines = std::io::BufReader::new(lines).lines().map_while(Result::ok);
                let mut events = lines
                    .map(|line| json!({ "event": "wire", "connection": number, "line": line }));
                if events.all(|event| publish(Keep::Recent, &event)) {
                    publish(Keep::As(&key), &state("closed"));
                }
            });
            Ok(Self { stream, is_open })
        }

        /// Ends it: nothing is published afterwards, and its thread ends.
        pub(in super::super) fn close(&self) {
            *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = false;
            // It may have ended already.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    impl Drop for Tap {
        fn drop(&mut self) {
            self.close();
        }
    }

    #[cfg(test)]
    mod tests {
        use std::io::{Read, Write};
        use std::time::Duration;

        use super::*;

        #[tokio::test]
        async fn a_closed_tap_says_nothing_more_and_lets_go() {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let feed = Feed::default();
            let tap = Tap::follow(ours, "tap x", 7, &feed).unwrap();
            theirs.write_all(b"one\n").unwrap();
            let mut seen = 0;
            let mut text = String::new();
            while !text.contains("\"one\"") {
                let (more, last) = feed.after(seen, usize::MAX).await;
                (text, seen) = (text + &more, last);
            }
            tap.close();
            // The other side hears that nobody listens, and whatever it says is not published.
            theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
            let _ = theirs.write_all(b"two\n");
            drop(theirs);
            let nothing =
                tokio::time::timeout(Duration::from_millis(50), feed.after(seen, 1)).await;
            assert!(nothing.is_err(), "{nothing:?}");
        }
    }
}

/// Sockets of this kind are of Unix.
#[cfg(not(unix))]
pub(super) struct Tap;

#[cfg(not(unix))]
impl Tap {
    pub(super) fn watch(_: &str, _: u64, _: &bowline_inspector::Feed) -> Result<Self, String> {
        Err("taps can be watched on Unix only".to_owned())
    }

    pub(super) fn close(&self) {}
}
