//! JSON-RPC: errors, ids, notifications, batches, and what is not a request at all.

use bowline::Revision;
use serde_json::{Value, json};

use crate::check::probe::{Outcome, PASS, Probe, Trouble, all_good, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Heard, request};

const PAGE: &str = "basic";

pub(super) const CHECKS: &[Check] = &[
    Check::must("jsonrpc.unknown-method", "an unknown method is refused with -32601", |probe| {
        Box::pin(unknown_method(probe))
    })
    .page(PAGE)
    .fix("Answer requests for methods that do not exist with error -32601."),
    Check::should("jsonrpc.invalid-params", "params without what the method needs are refused with -32602", |probe| {
        Box::pin(invalid_params(probe))
    })
    .page(PAGE)
    .fix("Answer with error -32602 when a required member of params is missing."),
    Check::should("jsonrpc.params-array", "params that are an array are refused", |probe| {
        Box::pin(params_array(probe))
    })
    .page(PAGE)
    .fix("Answer with error -32600 or -32602: params of MCP are objects."),
    Check::should("jsonrpc.parse-error", "what is not JSON is answered with -32700", |probe| {
        Box::pin(parse_error(probe))
    })
    .page(PAGE)
    .fix("Answer with error -32700 without an id, over HTTP with status 400, and go on."),
    Check::should("jsonrpc.invalid-request", "an object that is no message is refused with -32600", |probe| {
        Box::pin(invalid_request(probe))
    })
    .page(PAGE)
    .fix("Answer with error -32600, under the id if there is one, and go on."),
    Check::must("jsonrpc.ids", "ids come back as they were: strings, zero, negative numbers", |probe| {
        Box::pin(ids(probe))
    })
    .page(PAGE)
    .fix("Keep the id as the JSON value that came; do not turn strings into numbers or test it for truth."),
    Check::portability("jsonrpc.large-id", "integers beyond 2^53 come back exactly", |probe| {
        Box::pin(large_id(probe))
    })
    .page(PAGE)
    .fix("Keep the id as text or as a 64-bit integer, not as a floating point number."),
    Check::should("jsonrpc.id-null", "a request with the id null is not served", |probe| {
        Box::pin(id_null(probe))
    })
    .page(PAGE)
    .fix("Refuse id null with -32600: MCP forbids it, and nobody could match the answer."),
    Check::must("jsonrpc.notifications", "notifications are not answered", |probe| {
        Box::pin(notifications(probe))
    })
    .page(PAGE)
    .fix("Send nothing for a message without an id, whatever its method."),
    Check::must("jsonrpc.batch", "a batch is answered, each request in it", |probe| {
        Box::pin(batch(probe))
    })
    .only(Revision::V2025_03_26)
    .page(PAGE)
    .fix("2025-03-26 demands that batches are read; answer each request of it."),
    Check::info("jsonrpc.batch-refused", "a batch is not executed where the revision has none", |probe| {
        Box::pin(batch_refused(probe))
    })
    .since(Revision::V2025_06_18)
    .page(PAGE)
    .fix("Refuse arrays with -32600: batches are gone since 2025-06-18."),
    Check::should("jsonrpc.empty-batch", "an empty array does no harm", |probe| {
        Box::pin(empty_batch(probe))
    })
    .page(PAGE)
    .fix("Answer [] with error -32600 or ignore it, and go on."),
    Check::portability("jsonrpc.same-id", "two requests with the same id are both answered", |probe| {
        Box::pin(same_id(probe))
    })
    .page(PAGE)
    .fix("Do not remember ids once they are answered: some clients send id 1 with every request."),
    Check::portability("jsonrpc.extra-member", "members that nobody knows are tolerated in a request", |probe| {
        Box::pin(extra_member(probe))
    })
    .page(PAGE)
    .fix("Ignore unknown members of a message; do not drop it without an answer."),
    Check::should("jsonrpc.unknown-meta", "keys of _meta that nobody knows are tolerated", |probe| {
        Box::pin(unknown_meta(probe))
    })
    .page(PAGE)
    .fix("Ignore keys of _meta that the server does not know."),
];

/// A request that every server of the era answers.
pub(super) fn plain(probe: &Probe) -> &'static str {
    if probe.revision.is_modern() { "server/discover" } else { "ping" }
}

async fn unknown_method(probe: &mut Probe) -> Outcome {
    let reply = probe.ask("bowline/no-such-method", json!({})).await?;
    reply.expect_code("an unknown method", &[-32601])
}

async fn invalid_params(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let methods =
        [("tools", "tools/call"), ("resources", "resources/read"), ("prompts", "prompts/get")];
    let mut problems = Vec::new();
    let mut tried = false;
    for (_, method) in methods.iter().filter(|(name, _)| capabilities.get(name).is_some()) {
        tried = true;
        let reply = probe.ask(method, json!({})).await?;
        if let Err(Trouble::Broken(found)) =
            reply.expect_code(&format!("{method} with empty params"), &[-32602])
        {
            problems.extend(found);
        }
    }
    match tried {
        true => all_good(problems),
        false => skip("the server declares neither tools nor resources nor prompts"),
    }
}

async fn params_array(probe: &mut Probe) -> Outcome {
    let id = probe.link().await?.next_id();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": plain(probe), "params": [1]});
    let heard = probe.say(&message.to_string(), &[]).await?;
    match refused(&heard, &[-32600, -32602, -32700]) {
        // Legacy `ping` has no parameters; a server may not look at them.
        Some(_)
            if heard.responses().any(|it| it.get("result").is_some())
                && !probe.revision.is_modern() =>
        {
            PASS
        }
        Some(problem) => broken(format!("params: [1] {problem}")),
        None => PASS,
    }
}

async fn parse_error(probe: &mut Probe) -> Outcome {
    let heard = probe.say("{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\" 1}", &[]).await?;
    match refused(&heard, &[-32700]) {
        Some(problem) => broken(format!("a broken line of JSON {problem}")),
        None => PASS,
    }
}

async fn invalid_request(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    // Without a method it could be taken for an answer.
    for frame in
        ["{\"jsonrpc\":\"2.0\",\"id\":\"odd\",\"method\":7}", "{\"hello\":\"world\"}", "42"]
    {
        let heard = probe.say(frame, &[]).await?;
        // Parsers that read straight into a type call all of this a parse error or bad parameters.
        if let Some(problem) = refused(&heard, &[-32600, -32700, -32602]) {
            problems.push(format!("{frame} {problem}"));
        }
    }
    all_good(problems)
}

/// What is wrong with the answer to something that must be refused. Over HTTP a status is enough.
fn refused(heard: &Heard, codes: &[i64]) -> Option<String> {
    let refused_by_status = heard.status.is_some_and(|status| status.is_client_error());
    let wanted: Vec<String> = codes.iter().map(i64::to_string).collect();
    let wanted = wanted.join(" or ");
    match heard.code() {
        Some(code) if codes.contains(&code) => None,
        None if refused_by_status => None,
        Some(code) => Some(format!("was answered with error {code}, not {wanted}")),
        None if heard.responses().next().is_some() => {
            Some(format!("was answered with a result, not with error {wanted}"))
        }
        None => Some(format!("was not answered; error {wanted} was expected")),
    }
}

/// What came in place of an answer.
fn unanswered(heard: &Heard) -> String {
    match heard.status {
        Some(status) => format!("was answered with {status} and no message"),
        None => "was not answered".to_owned(),
    }
}

async fn ids(probe: &mut Probe) -> Outcome {
    let (revision, method) = (probe.revision, plain(probe));
    let odd = [
        json!(0),
        json!(-7),
        json!("7"),
        json!(""),
        json!("ünï\u{2028}code \"q\""),
        json!(2_147_483_648_u64),
    ];
    let mut problems = Vec::new();
    for id in odd {
        let message = request(revision, &id, method, json!({}));
        // Waits for whatever answers, not for the right id: that is what is checked.
        let heard = probe.say(&message.to_string(), &[]).await?;
        let mut answers =
            heard.responses().map(|answer| answer.get("id").cloned().unwrap_or_default());
        match answers.next() {
            Some(echo) if echo == id => {}
            Some(echo) => problems.push(format!("id {id} came back as {echo}")),
            None => problems.push(format!("a request with id {id} {}", unanswered(&heard))),
        }
    }
    all_good(problems)
}

async fn large_id(probe: &mut Probe) -> Outcome {
    let id = json!(9_007_199_254_740_993_u64);
    let message = request(probe.revision, &id, plain(probe), json!({}));
    let heard = probe.say(&message.to_string(), &[]).await?;
    let echo = heard.responses().next().map(|answer| answer.get("id").cloned().unwrap_or_default());
    match echo {
        Some(echo) if echo == id => PASS,
        Some(echo) => broken(format!("id {id} came back as {echo}")),
        None => broken(format!("a request with id {id} {}", unanswered(&heard))),
    }
}

async fn id_null(probe: &mut Probe) -> Outcome {
    let message = request(probe.revision, &Value::Null, plain(probe), json!({}));
    let heard = probe.say(&message.to_string(), &[]).await?;
    match heard.responses().find(|answer| answer.get("result").is_some()) {
        Some(_) => broken("a request with id null was answered with a result"),
        None => PASS,
    }
}

async fn notifications(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let unknown =
        json!({"jsonrpc": "2.0", "method": "notifications/bowline/unknown", "params": {"a": 1}});
    let listing = json!({"jsonrpc": "2.0", "method": "tools/list"});
    for message in [unknown, listing] {
        let heard = probe.say(&message.to_string(), &[]).await?;
        // Over HTTP a refusal may carry an error without an id.
        let is_answer = |answer: &&Value| {
            heard.status.is_none()
                || answer.get("id").is_some_and(|id| !id.is_null())
                || answer.get("result").is_some()
        };
        if let Some(answer) = heard.responses().find(is_answer) {
            problems
                .push(format!("{} without an id was answered with {answer}", message["method"]));
        }
    }
    all_good(problems)
}

async fn send_batch(probe: &mut Probe) -> Result<(Heard, [Value; 2]), Trouble> {
    let (revision, method) = (probe.revision, plain(probe));
    let link = probe.link().await?;
    let ids = [link.next_id(), link.next_id()];
    let batch: Vec<Value> = ids.iter().map(|id| request(revision, id, method, json!({}))).collect();
    let heard = probe.say(&Value::from(batch).to_string(), &[]).await?;
    Ok((heard, ids))
}

async fn batch(probe: &mut Probe) -> Outcome {
    let (heard, ids) = send_batch(probe).await?;
    let is_answered = |id: &&Value| {
        heard
            .responses()
            .any(|answer| answer.get("id") == Some(*id) && answer.get("result").is_some())
    };
    match ids.iter().filter(is_answered).count() {
        2 => PASS,
        count => broken(format!("of two requests in a batch {count} were answered with a result")),
    }
}

async fn batch_refused(probe: &mut Probe) -> Outcome {
    let (heard, _) = send_batch(probe).await?;
    match heard.responses().any(|answer| answer.get("result").is_some()) {
        true => broken("a batch was executed"),
        false => PASS,
    }
}

async fn empty_batch(probe: &mut Probe) -> Outcome {
    let heard = probe.say("[]", &[]).await?;
    match heard.responses().any(|answer| answer.get("result").is_some()) {
        true => broken("an empty array was answered with a result"),
        false => PASS,
    }
}

async fn same_id(probe: &mut Probe) -> Outcome {
    let message = request(probe.revision, &json!("same"), plain(probe), json!({}));
    for round in ["first", "second"] {
        let heard = probe.say(&message.to_string(), &[]).await?;
        if !heard.responses().any(|answer| answer.get("result").is_some()) {
            return broken(format!("the {round} request with id \"same\" got no result"));
        }
    }
    PASS
}

async fn extra_member(probe: &mut Probe) -> Outcome {
    let id = probe.link().await?.next_id();
    let mut message = request(probe.revision, &id, plain(probe), json!({}));
    message["bowline"] = json!({"unknown": true});
    let heard = probe.say(&message.to_string(), &[]).await?;
    match heard.responses().find(|answer| answer.get("result").is_some()) {
        Some(_) => PASS,
        None if heard.responses().next().is_some() => {
            broken("a request with an unknown member was refused")
        }
        None => broken(format!("a request with an unknown member {}", unanswered(&heard))),
    }
}

async fn unknown_meta(probe: &mut Probe) -> Outcome {
    let params = json!({"_meta": {"com.example/unknown": {"a": [1, null]}}});
    let method = plain(probe);
    let reply = probe.ask(method, params).await?;
    match reply.is_result() {
        true => PASS,
        false => broken(format!(
            "{method} with an unknown key in _meta was answered with {}",
            reply.describe()
        )),
    }
}
