//! The resources of an upstream server that somebody at the front listens for.
//!
//! Nobody says when the last listener leaves, so a subscription looks for listeners itself: after
//! each change, from time to time, and when others need its place.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::losses::Loss;
use super::mirror::Mirror;
use crate::client::{Change, Changes, Wanted};

/// How many resources a proxy subscribes to.
pub(super) const MOST: usize = 1024;
/// How often a subscription looks whether anybody still listens.
const LOOK: Duration = Duration::from_secs(60);
/// The gaps between attempts to subscribe: they double from the first to the last.
const GAPS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(300)];

/// The subscriptions, by URI, and what follows each.
#[derive(Default)]
pub(super) struct Subscribed(HashMap<String, AbortHandle>);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

impl Subscribed {
    pub(super) fn has(&self, uri: &str) -> bool {
        self.0.contains_key(uri)
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    pub(super) fn add(&mut self, uri: &str, task: AbortHandle) {
        self.0.insert(uri.to_owned(), task);
    }

    pub(super) fn forget(&mut self, uri: &str) {
        self.0.remove(uri);
    }

    /// Ends the subscriptions to all other resources.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|uri, task| {
            let is_wanted = is_wanted(uri);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
    }
}

/// Follows the changes of a resource as long as anybody listens, and subscribes until that works.
pub(super) async fn follow(mirror: Weak<Mirror>, uri: String) {
    let mut gap = GAPS[0];
    let (mut is_again, mut is_counted) = (false, false);
    loop {
        let client = mirror.upgrade().map(|mirror| mirror.upstream.client.clone());
        let Some(client) = client else { return };
        match client.changes(Wanted::new().resource(&uri)).await {
            Ok(changes) => {
                // Nobody knows what happened in between.
                if let Some(mirror) = mirror.upgrade().filter(|_| is_again) {
                    mirror.resource_updated(&uri);
                }
                if pass_on(&mirror, &uri, changes).await {
                    return;
                }
                gap = GAPS[0];
            }
            Err(error) => {
                tracing::debug!(%error, uri, "no subscription to a resource upstream");
                let Some(mirror) = mirror.upgrade() else { return };
                if !std::mem::replace(&mut is_counted, true) {
                    mirror.upstream.pool.losses().add(Loss::Subscription);
                }
            }
        }
        is_again = true;
        sleep(gap).await;
        gap = (2 * gap).min(GAPS[1]);
        if mirror.upgrade().is_none_or(|mirror| mirror.forget_unheard(&uri)) {
            return;
        }
    }
}

/// Passes changes of a resource on. Returns whether that is over: nobody listens. Otherwise the
/// server has withdrawn the subscription.
async fn pass_on(mirror: &Weak<Mirror>, uri: &str, mut changes: Changes) -> bool {
    loop {
        let change = tokio::select! {
            change = changes.next() => Some(change),
            () = sleep(LOOK) => None,
        };
        let Some(mirror) = mirror.upgrade() else { return true };
        match change {
            Some(Some(Ok(Change::Resource(changed)))) => mirror.resource_updated(&changed),
            Some(Some(Ok(_))) => {}
            Some(Some(Err(_)) | None) => return false,
            // Those who listen may be at another node of a fleet.
            None if mirror.is_shared() => continue,
            None => {}
        }
        if mirror.forget_unheard(uri) {
            return true;
        }
    }
}
