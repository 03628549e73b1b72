//! Which request of a recording a message of the server belongs to.

use std::collections::HashMap;

use bowline_proto::model::meta_key;
use serde_json::Value;

use crate::pairs::Pairs;

/// The requests so far, by everything that a later message may refer to.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Those that wait for an answer, by id.
    waiting: Pairs<String, usize>,
    /// The unanswered ones of each exchange.
    exchanges: HashMap<u64, usize>,
    /// By progress token.
    tokens: HashMap<String, usize>,
    /// Subscriptions, by the id of the request.
    subscriptions: HashMap<String, usize>,
    /// Those that wait, in order.
    order: Vec<usize>,
    latest: Option<usize>,
}

impl Requests {
    /// The client sends a request.
    pub(super) fn begin(&mut self, take: usize, exchange: u64, request: &Value) {
        let id = request["id"].to_string();
        if let Some(token) = progress_token(request) {
            self.tokens.insert(token.to_string(), take);
        }
        if request["method"] == "subscriptions/listen" {
            self.subscriptions.insert(id.clone(), take);
        } else {
            self.order.push(take);
        }
        if exchange > 0 {
            self.exchanges.insert(exchange, take);
        }
        self.waiting.insert(id, exchange, take);
        self.latest = Some(take);
    }

    /// The server answers: the request.
    pub(super) fn answered(&mut self, exchange: u64, answer: &Value) -> Option<usize> {
        let take = self.waiting.take(&answer["id"].to_string(), exchange)?;
        self.order.retain(|waiting| *waiting != take);
        Some(take)
    }

    /// The request that a notification or a question of the server belongs to: the one that it
    /// names, the one in whose stream it comes, the latest that waits, or the latest.
    pub(super) fn of(&self, exchange: u64, message: &Value) -> Option<usize> {
        let params = &message["params"];
        let token = self.tokens.get(&params["progressToken"].to_string());
        let subscription = &params["_meta"][meta_key::SUBSCRIPTION_ID];
        let named = token.or_else(|| self.subscriptions.get(&subscription.to_string()));
        let named = named.or_else(|| self.exchanges.get(&exchange));
        named.or_else(|| self.order.last()).copied().or(self.latest)
    }
}

/// The token under which a request wants to hear of its progress.
pub(super) fn progress_token(request: &Value) -> Option<&Value> {
    request.pointer("/params/_meta/progressToken")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_belong_to_what_they_name() {
        let mut requests = Requests::default();
        let progress = |token| json!({ "params": { "progressToken": token } });
        let call = |id, token| json!({ "id": id, "method": "tools/call", "params": { "_meta": { "progressToken": token } } });
        let listen = json!({ "id": 9, "method": "subscriptions/listen" });
        requests.begin(0, 0, &listen);
        requests.begin(1, 0, &call(1, "a"));
        requests.begin(2, 0, &call(2, "b"));
        let log = json!({ "method": "notifications/message", "params": {} });
        let changed = json!({ "params": { "_meta": { meta_key::SUBSCRIPTION_ID: 9 } } });
        assert_eq!(requests.of(0, &progress("a")), Some(1));
        assert_eq!(requests.of(0, &log), Some(2));
        assert_eq!(requests.answered(0, &json!({ "id": 2 })), Some(2));
        assert_eq!(requests.of(0, &log), Some(1));
        assert_eq!(requests.of(0, &changed), Some(0));
        assert_eq!(requests.answered(0, &json!({ "id": 1 })), Some(1));
        // It comes between two requests.
        assert_eq!(requests.of(0, &log), Some(2));
    }

    #[test]
    fn over_http_messages_belong_to_their_stream() {
        let mut requests = Requests::default();
        let call = json!({ "id": 1, "method": "tools/call" });
        requests.begin(0, 5, &call);
        requests.begin(1, 6, &call);
        let question = json!({ "id": 1, "method": "roots/list" });
        assert_eq!(requests.of(5, &question), Some(0));
        assert_eq!(requests.answered(5, &json!({ "id": 1 })), Some(0));
        assert_eq!(requests.answered(6, &json!({ "id": 1 })), Some(1));
    }
}
