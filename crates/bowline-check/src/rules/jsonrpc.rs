//! JSON-RPC: errors, ids, notifications, batches, and what is not a request at all.

use bowline::Revision::{self, V2025_06_18};
use serde_json::{Value, json};

use crate::frames::message::{self, plain_method};
use crate::probe::{
    NotPassed, Outcome, PASS, PROMPTS, Probe, RESOURCES, Received, TOOLS, all_good, broken, ensure,
    problems_of, skip,
};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("basic");
    Must "jsonrpc.unknown-method" => probe.gets_error(("bowline/no-such-method", json!({})), "an unknown method", -32601),
        "an unknown method is rejected with -32601",
        "Answer requests for methods that do not exist with error -32601.";
    Should "jsonrpc.invalid-params" => invalid_params(probe),
        "params without a required member are rejected with -32602",
        "Answer with error -32602 when a required member of params is missing.";
    Should "jsonrpc.params-array" => params_array(probe),
        "params that are an array are rejected",
        "Answer with error -32600 or -32602: in MCP, params is an object.";
    Should "jsonrpc.parse-error" => sends(probe, BROKEN, "a malformed line of JSON", &[-32700]),
        "input that is not JSON is answered with -32700",
        "Answer with error -32700 without an id, over HTTP with status 400, and continue.";
    Should "jsonrpc.invalid-request" => invalid_request(probe),
        "an object that is not a message is rejected with -32600",
        "Answer with error -32600, under the id if there is one, and continue.";
    Must "jsonrpc.ids" => ids(probe),
        "ids come back unchanged: strings, zero, negative numbers",
        "Keep the id as the JSON value that came; do not turn strings into numbers or test it for truth.";
    Portability "jsonrpc.large-id" => echoed(probe, json!(9_007_199_254_740_993_u64)),
        "integers beyond 2^53 come back exactly",
        "Keep the id as text or as a 64-bit integer, not as a floating-point number.";
    Should "jsonrpc.id-null" => id_null(probe),
        "a request with the id null is not served",
        "Reject id null with -32600: MCP forbids it, and no client could match the answer.";
    Must "jsonrpc.notifications" => notifications(probe),
        "notifications are not answered",
        "Send nothing for a message without an id, whatever its method.";
    Must "jsonrpc.batch" [.only(Revision::BATCHING).extra()] => batch(probe),
        "each request of a batch is answered",
        "2025-03-26 requires servers to accept batches; answer each request in them.";
    Info "jsonrpc.batch-refused" [.since(V2025_06_18)] => batch_refused(probe),
        "a batch is not executed in revisions without batches",
        "Reject arrays with -32600: batches were removed in 2025-06-18.";
    Should "jsonrpc.empty-batch" => empty_batch(probe),
        "an empty array does no harm",
        "Answer [] with error -32600 or ignore it, and continue.";
    Portability "jsonrpc.same-id" => same_id(probe),
        "two requests with the same id are both answered",
        "Forget ids once they are answered: some clients send id 1 with every request.";
    Portability "jsonrpc.extra-member" => extra_member(probe),
        "unknown members of a request are tolerated",
        "Ignore unknown members of a message; do not drop the message unanswered.";
    Should "jsonrpc.unknown-meta" => unknown_meta(probe),
        "unknown keys in _meta are tolerated",
        "Ignore keys of _meta that the server does not know.";
}

async fn invalid_params(probe: &mut Probe) -> Outcome {
    let mut problems = None;
    for list in probe.declared(&[TOOLS, RESOURCES, PROMPTS]).await? {
        let method = match list.capability {
            "tools" => "tools/call",
            "resources" => "resources/read",
            _ => "prompts/get",
        };
        let reply = probe.ask(method, json!({})).await?;
        let outcome = reply.expect_code(&format!("{method} with empty params"), &[-32602]);
        problems.get_or_insert_with(Vec::new).extend(problems_of(outcome)?);
    }
    problems.map_or_else(|| skip("the server has no tools, resources or prompts"), all_good)
}

async fn params_array(probe: &mut Probe) -> Outcome {
    let mut message = probe.request(plain_method(probe.revision), json!({})).await?;
    message["params"] = json!([1]);
    let received = probe.say(&message.to_string(), &[]).await?;
    // Legacy `ping` has no parameters, and a server need not look at them.
    if received.has_result() && !probe.revision.is_modern() {
        return PASS;
    }
    received.expect_error("params: [1]", &[-32600, -32602, -32700])
}

const BROKEN: &str = "{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\" 1}";

/// Sends a frame that must get an error.
async fn sends(probe: &mut Probe, frame: &str, what: &str, codes: &[i64]) -> Outcome {
    probe.say(frame, &[]).await?.expect_error(what, codes)
}

async fn invalid_request(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    // Without a method it could pass for an answer.
    for frame in
        ["{\"jsonrpc\":\"2.0\",\"id\":\"odd\",\"method\":7}", "{\"hello\":\"world\"}", "42"]
    {
        // Parsers that read straight into a type call all of this a parse error or bad parameters.
        let outcome = sends(probe, frame, frame, &[-32600, -32700, -32602]).await;
        problems.extend(problems_of(outcome)?);
    }
    all_good(problems)
}

/// A plain request with an id of the check's own. Waits for any response, whatever its id.
async fn ask_as(probe: &mut Probe, id: &Value) -> Result<Received, NotPassed> {
    let message = message::request(probe.revision, id, plain_method(probe.revision), json!({}));
    probe.say(&message.to_string(), &[]).await
}

/// Whether an id came back unchanged.
async fn echoed(probe: &mut Probe, id: Value) -> Outcome {
    let received = ask_as(probe, &id).await?;
    match received.responses().next().map(|answer| &answer["id"]) {
        Some(echo) => ensure(*echo == id, || format!("id {id} came back as {echo}")),
        None => broken(format!("a request with id {id} got {}", received.describe_silence())),
    }
}

async fn ids(probe: &mut Probe) -> Outcome {
    let odd = json!([0, -7, "7", "", "ünï\u{2028}code \"q\"", 2_147_483_648_u64]);
    let mut problems = Vec::new();
    for id in odd.as_array().into_iter().flatten() {
        problems.extend(problems_of(echoed(probe, id.clone()).await)?);
    }
    all_good(problems)
}

async fn id_null(probe: &mut Probe) -> Outcome {
    let received = ask_as(probe, &Value::Null).await?;
    ensure(!received.has_result(), || "a request with id null got a result".to_owned())
}

async fn notifications(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let unknown =
        json!({"jsonrpc": "2.0", "method": "notifications/bowline/unknown", "params": {"a": 1}});
    let listing = json!({"jsonrpc": "2.0", "method": "tools/list"});
    for message in [unknown, listing] {
        let received = probe.say(&message.to_string(), &[]).await?;
        // Over HTTP a rejection may carry an error without an id.
        let is_answer = |answer: &&Value| {
            received.status.is_none()
                || answer.get("id").is_some_and(|id| !id.is_null())
                || answer.get("result").is_some()
        };
        let answer = received.responses().find(is_answer);
        problems.extend(
            answer.map(|answer| format!("{} without an id got {answer}", message["method"])),
        );
    }
    all_good(problems)
}

/// Sends two requests in a batch; also returns how many got a result.
async fn send_batch(probe: &mut Probe) -> Result<(Received, usize), NotPassed> {
    let method = plain_method(probe.revision);
    let batch = [probe.request(method, json!({})).await?, probe.request(method, json!({})).await?];
    let received = probe.say(&json!(batch).to_string(), &[]).await?;
    let is_served = |request: &&Value| {
        let mut responses = received.responses();
        responses.any(|it| it.get("id") == request.get("id") && it.get("result").is_some())
    };
    let count = batch.iter().filter(is_served).count();
    Ok((received, count))
}

async fn batch(probe: &mut Probe) -> Outcome {
    let (_, count) = send_batch(probe).await?;
    ensure(count == 2, || format!("of two requests in a batch, {count} got a result"))
}

async fn batch_refused(probe: &mut Probe) -> Outcome {
    let (received, _) = send_batch(probe).await?;
    ensure(!received.has_result(), || "a batch was executed".to_owned())
}

async fn empty_batch(probe: &mut Probe) -> Outcome {
    let received = probe.say("[]", &[]).await?;
    ensure(!received.has_result(), || "an empty array got a result".to_owned())
}

async fn same_id(probe: &mut Probe) -> Outcome {
    for round in ["first", "second"] {
        let received = ask_as(probe, &json!("same")).await?;
        if !received.has_result() {
            return broken(format!("the {round} request with id \"same\" got no result"));
        }
    }
    PASS
}

async fn extra_member(probe: &mut Probe) -> Outcome {
    let mut message = probe.request(plain_method(probe.revision), json!({})).await?;
    message["bowline"] = json!({"unknown": true});
    let received = probe.say(&message.to_string(), &[]).await?;
    ensure(received.has_result(), || {
        let got = match received.responses().next() {
            Some(_) => "an error".to_owned(),
            None => received.describe_silence(),
        };
        format!("a request with an unknown member got {got}")
    })
}

async fn unknown_meta(probe: &mut Probe) -> Outcome {
    let params = json!({"_meta": {"com.example/unknown": {"a": [1, null]}}});
    let method = plain_method(probe.revision);
    let reply = probe.ask(method, params).await?;
    reply.expect_result(&format!("{method} with an unknown key in _meta"))
}
