//! Taps that run on this machine: found in the hub, and watched line by line.

use bowline_gateway::hub;
use bowline_inspector::Feed;
use serde_json::{Value, json};

/// The taps of this user.
pub(super) fn running() -> Vec<Value> {
    let found = hub::running(&hub::folder()).unwrap_or_default();
    found.iter().map(|path| json!({ "path": path.to_string_lossy() })).collect()
}

/// Publishes what a tap sees, until it ends.
#[cfg(unix)]
pub(super) fn watch(path: &str, connection: u64, feed: &Feed) -> Result<(), String> {
    use std::io::BufRead;

    use bowline_inspector::Keep;

    let known = hub::running(&hub::folder()).map_err(|error| error.to_string())?;
    // Only a tap: the page does not choose which sockets are opened.
    let path = known.into_iter().find(|it| it.to_string_lossy() == path);
    let path = path.ok_or("this tap does not run any more")?;
    let stream = hub::connect(&path).map_err(|error| error.to_string())?;
    let stream = stream.ok_or("this tap does not run any more")?;
    let feed = feed.clone();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    std::thread::spawn(move || {
        let told = |state: &str| {
            let event = json!({
                "event": "connection", "connection": connection, "state": state,
                "about": format!("tap {name}"), "name": format!("tap {name}"), "isTap": true,
            });
            feed.publish(Keep::As(&format!("c{connection}/state")), &event);
        };
        told("open");
        for line in std::io::BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            let event = json!({ "event": "wire", "connection": connection, "line": line });
            feed.publish(Keep::Recent, &event);
        }
        told("closed");
    });
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn watch(_: &str, _: u64, _: &Feed) -> Result<(), String> {
    Err("taps can be watched on Unix only".to_owned())
}
