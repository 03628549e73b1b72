//! The methods of the extension, in both eras.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::causes::with_causes;
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::model::meta_key;
use bowline_web::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Events;
use super::kind::{Candidate, EventKind};
use super::limits::millis;
use super::log::{Occurrence, Page};
use super::secret::WebhookSecret;
use super::shared::Shared;
use super::subscription::{Key, Subscription, Wish};
use crate::tasks::{StoreError, iso};
use crate::{Context, Extension, HandlerError, Principal, clock};

/// The id of the extension.
pub(super) const ID: &str = "io.modelcontextprotocol/events";

const LIST: &str = "events/list";
const POLL: &str = "events/poll";
const STREAM: &str = "events/stream";
const SUBSCRIBE: &str = "events/subscribe";
const UNSUBSCRIBE: &str = "events/unsubscribe";

/// The longest URL of a webhook, in bytes.
const LONGEST_URL: usize = 2_048;

type Answering = Result<Value, HandlerError>;

pub(super) fn extension(events: &Events) -> Extension {
    let [list, poll, stream, subscribe, unsubscribe, stop] =
        std::array::from_fn(|_| events.clone());
    Extension::new(ID)
        .capability("events", json!({}))
        .method(LIST, .., move |_: Context, _: Json| {
            let kinds = list.0.shared.kinds();
            let events: Vec<_> = kinds.iter().map(|kind| kind.to_json()).collect();
            async move { Ok::<_, HandlerError>(json!({ "events": events })) }
        })
        .method(POLL, .., move |context: Context, wanted: Wanted| {
            let shared = Arc::clone(&poll.0.shared);
            async move { shared.poll(&context, wanted) }
        })
        .method(STREAM, .., move |context: Context, wanted: Wanted| {
            let shared = Arc::clone(&stream.0.shared);
            async move { shared.stream(&context, wanted).await }
        })
        .without_deadline(STREAM)
        .method(SUBSCRIBE, .., move |context: Context, wanted: Wanted| {
            let shared = Arc::clone(&subscribe.0.shared);
            async move { shared.handle_subscribe(&context, wanted).await }
        })
        .method(UNSUBSCRIBE, .., move |context: Context, wanted: Wanted| {
            let shared = Arc::clone(&unsubscribe.0.shared);
            async move { shared.handle_unsubscribe(&context, wanted).await }
        })
        .on_stop(move |_| {
            let shared = Arc::clone(&stop.0.shared);
            async move { shared.stop().await }
        })
}

/// The parameters of all methods but the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    max_age_ms: Option<u64>,
    #[serde(default)]
    max_events: Option<usize>,
    #[serde(default)]
    ttl_ms: Option<u64>,
    #[serde(default)]
    delivery: Option<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    #[serde(default)]
    mode: Option<String>,
    url: String,
    #[serde(default)]
    secret: Option<String>,
}

/// A request that was checked.
struct Checked {
    kind: Arc<EventKind>,
    arguments: Value,
    max_age: Option<u64>,
    /// From where on, and whether something is lost before; `None` if it does not say.
    from: Option<(u64, bool)>,
}

impl Shared {
    fn check(&self, method: &str, wanted: &mut Wanted) -> Result<Checked, HandlerError> {
        let name = &wanted.name;
        let unknown = || invalid(method, &format!("params.name: there is no event {name:?}"));
        let kind = self.kind(name).ok_or_else(unknown)?;
        let arguments = wanted.arguments.take().unwrap_or_else(|| json!({}));
        if arguments.to_string().len() > self.limits.arguments {
            let most = self.limits.arguments;
            return Err(invalid(method, &format!("params.arguments: {most} bytes are allowed")));
        }
        kind.check(&arguments).map_err(|problem| invalid(method, &problem))?;
        let position = self.log.position(wanted.cursor.as_deref());
        let position = position.map_err(|problem| invalid(method, problem))?;
        let from = wanted.cursor.is_some().then_some(position);
        Ok(Checked { kind, arguments, max_age: wanted.max_age_ms, from })
    }

    fn poll(&self, context: &Context, mut wanted: Wanted) -> Answering {
        let checked = self.check(POLL, &mut wanted)?;
        let most = wanted.max_events.unwrap_or(usize::MAX).clamp(1, self.limits.page.max(1));
        let (from, is_lost) = checked.from.unwrap_or_else(|| (self.log.end(), false));
        let page = self.page(context, &checked, from, most);
        let events: Vec<_> = page.events.iter().map(|event| json!(self.log.told(event))).collect();
        Ok(json!({
            "events": events,
            "cursor": self.log.cursor(page.next),
            "truncated": is_lost || page.is_truncated,
            "hasMore": page.has_more,
            "nextPollMs": if page.has_more { 0 } else { millis(self.limits.poll) },
        }))
    }

    /// What a caller gets to see.
    fn page(&self, context: &Context, checked: &Checked, from: u64, most: usize) -> Page {
        let principal = context.caller().principal.as_ref().map(Principal::as_str);
        let Checked { kind, arguments, max_age, .. } = checked;
        let now = clock::unix_millis();
        self.log.read(from, most, |event: &Occurrence| {
            let candidate = Candidate { principal, arguments, data: &event.data };
            let is_fresh = max_age.is_none_or(|age| event.time.saturating_add(age) >= now);
            *event.name == *kind.name && is_fresh && kind.admits(&candidate)
        })
    }

    async fn stream(&self, context: &Context, mut wanted: Wanted) -> Answering {
        let checked = self.check(STREAM, &mut wanted)?;
        let Some(_place) = self.streams.try_take(context.caller().owner().as_deref()) else {
            let message = format!(
                "{STREAM}: the server, or this client, has too many streams; try again later"
            );
            return Err(HandlerError::Refused(ErrorObject::internal(message)));
        };
        let meta = json!({ (meta_key::SUBSCRIPTION_ID): context.request_id() });
        let tell = async |what: &str, mut params: Value| {
            params["_meta"] = meta.clone();
            context.notify(&format!("notifications/events/{what}"), params).await
        };
        let (mut from, mut is_lost) = checked.from.unwrap_or_else(|| (self.log.end(), false));
        let mut stopping = self.stopping.subscribe();
        let mut is_told = false;
        loop {
            let page = self.page(context, &checked, from, self.limits.page.max(1));
            is_lost |= page.is_truncated;
            // After a gap, it begins anew.
            if !is_told || is_lost {
                let active = json!({ "cursor": self.log.cursor(from), "truncated": is_lost });
                tell("active", active).await;
                (is_told, is_lost) = (true, false);
            }
            for event in &page.events {
                if !tell("event", json!(self.log.told(event))).await {
                    // Nobody listens any more.
                    return Ok(json!({}));
                }
            }
            from = page.next;
            if page.has_more {
                continue;
            }
            // Nothing is held while something is sent.
            let what = tokio::select! {
                () = self.log.reach(from) => continue,
                () = tokio::time::sleep(self.limits.heartbeat) => "heartbeat",
                () = is_set(&mut stopping) => "terminated",
                () = expiry(context) => "terminated",
            };
            let is_told = tell(what, json!({ "cursor": self.log.cursor(from) })).await;
            if what == "terminated" || !is_told {
                return Ok(json!({}));
            }
        }
    }

    async fn handle_subscribe(
        self: &Arc<Self>,
        context: &Context,
        mut wanted: Wanted,
    ) -> Answering {
        let owner = owner(SUBSCRIBE, context)?;
        let checked = self.check(SUBSCRIBE, &mut wanted)?;
        let delivery = delivery(SUBSCRIBE, wanted.delivery)?;
        let bad = |problem: &str| invalid(SUBSCRIBE, problem);
        if delivery.mode.as_deref() != Some("webhook") {
            return Err(bad("params.delivery.mode must be \"webhook\""));
        }
        let secret =
            delivery.secret.as_deref().and_then(WebhookSecret::parse).ok_or_else(|| {
                bad("params.delivery.secret must be \"whsec_\" and 24 to 64 bytes in base64")
            })?;
        let url = self.check_url(&delivery.url).await.map_err(|problem| bad(&problem))?;
        let key = Key::new(&owner, url.as_str(), &wanted.name, &checked.arguments);
        let ttl = self.limits.ttl(wanted.ttl_ms);
        let Checked { kind, arguments, max_age, from } = checked;
        let wish = Wish { key, arguments, kind, secret, ttl, max_age, from };
        let subscribed = self.subscribe(wish).map_err(bad)?;
        // It is stored before the client hears of it.
        if let Err(error) = self.keep(&subscribed.subscription).await {
            self.take_back(subscribed).await;
            return Err(failed(SUBSCRIBE, &error));
        }
        Ok(self.subscribed(&subscribed.subscription, subscribed.is_truncated))
    }

    fn subscribed(&self, subscription: &Subscription, is_truncated: bool) -> Value {
        let state = subscription.state();
        let status = match (&state.problem, state.is_verified) {
            (Some(_), _) => "failing",
            (None, false) => "pending",
            (None, true) => "active",
        };
        json!({
            "id": subscription.id,
            "refreshBefore": iso(state.expires),
            "cursor": self.log.cursor(state.position),
            "truncated": is_truncated,
            "deliveryStatus": { "status": status, "lastError": state.problem },
        })
    }

    async fn handle_unsubscribe(self: &Arc<Self>, context: &Context, wanted: Wanted) -> Answering {
        let owner = owner(UNSUBSCRIBE, context)?;
        let delivery = delivery(UNSUBSCRIBE, wanted.delivery)?;
        let arguments = wanted.arguments.unwrap_or_else(|| json!({}));
        let url = Url::parse(&delivery.url).map_err(|error| {
            invalid(UNSUBSCRIBE, &format!("params.delivery.url: expected {error}"))
        })?;
        let key = Key::new(&owner, url.as_str(), &wanted.name, &arguments);
        match self.unsubscribe(&key).await {
            Ok(true) => Ok(json!({})),
            Ok(false) => Err(invalid(UNSUBSCRIBE, "there is no such subscription")),
            Err(error) => Err(failed(UNSUBSCRIBE, &error)),
        }
    }

    /// Checks where a webhook would go. Connections are checked again, each of them.
    async fn check_url(&self, text: &str) -> Result<Url, String> {
        let named = |problem: String| format!("params.delivery.url: {problem}");
        if text.len() > LONGEST_URL {
            return Err(named(format!("{LONGEST_URL} bytes are allowed")));
        }
        let url = Url::parse(text).map_err(|error| named(format!("expected {error}")))?;
        if !url.is_https() && !self.is_exception(&url) {
            return Err(named("must be https".to_owned()));
        }
        let reach = self.reach();
        let checked = tokio::time::timeout(self.limits.answer, reach.check(&url)).await;
        match checked {
            Ok(Ok(())) => Ok(url),
            Ok(Err(error)) => Err(named(with_causes(&error))),
            Err(_) => Err(named("the host name could not be resolved in time".to_owned())),
        }
    }
}

/// Waits until the caller's token expires. It may come back with another one.
async fn expiry(context: &Context) {
    match context.caller().principal.as_ref().and_then(Principal::expires) {
        Some(expires) => {
            let left = expires.saturating_sub(clock::unix_seconds());
            tokio::time::sleep(Duration::from_secs(left)).await;
        }
        None => std::future::pending().await,
    }
}

/// Waits until the server stops.
async fn is_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|it| *it).await;
}

/// The principal that asks. Webhooks are for clients that can be held to account.
fn owner(method: &str, context: &Context) -> Result<String, HandlerError> {
    let principal = context.caller().principal.as_ref().map(|it| it.as_str().to_owned());
    principal.ok_or_else(|| {
        let message = format!("{method}: only authenticated clients can have webhooks");
        HandlerError::Refused(ErrorObject::new(ErrorCode::INVALID_REQUEST, message))
    })
}

fn delivery(method: &str, delivery: Option<Delivery>) -> Result<Delivery, HandlerError> {
    delivery.ok_or_else(|| invalid(method, "params.delivery is missing"))
}

fn failed(method: &str, error: &StoreError) -> HandlerError {
    tracing::error!(method, %error, "a subscription of events was not stored");
    let message = format!("{method}: the store of subscriptions failed; try again later");
    HandlerError::Refused(ErrorObject::internal(message))
}

fn invalid(method: &str, problem: &str) -> HandlerError {
    HandlerError::Refused(ErrorObject::invalid_params(format!("{method}: {problem}")))
}
