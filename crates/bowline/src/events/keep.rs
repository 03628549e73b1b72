//! Subscriptions in a store, so that they outlive the process.

use std::sync::Arc;

use bowline_proto::json::Json;

use super::shared::{Shared, lock};
use super::subscription::{Saved, Subscription};
use crate::clock;
use crate::tasks::{Quota, StoreError, TaskRecord, TaskStore};

/// What marks the records of subscriptions in a store.
const KIND: &str = "events/subscribe";

/// Where subscriptions are kept.
pub(super) struct Keeper {
    store: Arc<dyn TaskStore>,
    /// One write at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Shared {
    /// Brings back the subscriptions in a store, and keeps all of them there from now on.
    pub(super) async fn keep_in(
        self: &Arc<Self>,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), StoreError> {
        let (mut found, mut others) = (Vec::new(), 0_u32);
        for id in store.due(u64::MAX, usize::MAX).await? {
            let record = match store.load(&id).await {
                Ok(Some(record)) => record,
                Ok(None) | Err(StoreError::Damaged { .. }) => continue,
                Err(error) => return Err(error),
            };
            if record.tool != KIND {
                // A store of something else, which is not ours to clear.
                others += 1;
                continue;
            }
            let version = record.version();
            let content = TaskRecord::clone(&record).into_content();
            match content.and_then(|content| content.parse::<Saved>().ok()) {
                Some(saved) if self.can_restore(&saved) => found.push((saved, Some(version))),
                // Of a later release, which may come back.
                None if record.expires() > clock::unix_millis() => others += 1,
                // Expired, or of a kind that is no more.
                _ => drop(store.swap(&id, version, None).await?),
            }
        }
        if others > 0 {
            tracing::warn!(
                others,
                "the store of subscriptions has records that are not subscriptions; they are left \
                 alone; help: give events a store of their own"
            );
        }
        let _ = self.keeper.set(Keeper { store, turn: tokio::sync::Mutex::default() });
        self.restore(found);
        Ok(())
    }

    /// Writes what became of a subscription: that it is there, or that it is gone.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn keep(&self, subscription: &Subscription) -> Result<(), StoreError> {
        let Some(Keeper { store, turn }) = self.keeper.get() else { return Ok(()) };
        let _turn = turn.lock().await;
        let id = subscription.id.as_str();
        let next = match self.is_there(subscription) {
            true => Some(subscription.to_record()?),
            false => None,
        };
        let noted = *lock(&subscription.version);
        let kept = match noted {
            Some(version) => Some(version),
            // A write may have been cut off before it was noted.
            None => store.load(id).await?.map(|found| found.version()),
        };
        let Some(mut version) = kept else {
            let Some(record) = next else { return Ok(()) };
            let all = self.limits.subscriptions;
            let quota = Quota::of(all, self.limits.subscriptions_per_owner);
            store.create(Arc::new(record), quota).await?;
            *lock(&subscription.version) = Some(0);
            return Ok(());
        };
        loop {
            let next = next.clone().map(|it| Arc::new(it.at_version(version + 1)));
            let is_there = next.is_some();
            if store.swap(id, version, next).await? {
                *lock(&subscription.version) = is_there.then_some(version + 1);
                return Ok(());
            }
            let Some(found) = store.load(id).await? else { return Ok(()) };
            version = found.version();
        }
    }

    /// The same, where nobody waits for it.
    pub(super) async fn try_to_keep(&self, subscription: &Subscription) {
        if let Err(error) = self.keep(subscription).await {
            let id = &subscription.id;
            tracing::warn!(subscription = %id, %error, "a subscription of events was not stored");
        }
    }
}

impl Subscription {
    fn to_record(&self) -> Result<TaskRecord, StoreError> {
        let saved = self.save();
        let content = Json::new(&saved).map_err(StoreError::failed)?;
        let owner = &self.key.owner;
        Ok(TaskRecord::kept(KIND, &self.id, Some(owner), saved.expires, content))
    }
}
