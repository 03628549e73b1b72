//! Questions of the modern era: replayed, sealed, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::seal::KeyRing;
use bowline::{AskError, Context, Elicited, HandlerError, Limits, Server, Tool};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, modern, request, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Who {}

async fn name(context: &Context, message: String) -> Result<String, AskError> {
    Ok(match context.elicit::<Name>(message).await? {
        Elicited::Accepted(answer) => answer.name,
        Elicited::Declined | Elicited::Cancelled => "nobody".to_owned(),
    })
}

/// `runs` counts how often handlers run, `done` how often their work is done.
fn server(runs: &Arc<AtomicUsize>, done: &Arc<AtomicUsize>) -> Server {
    let (runs, done) = (Arc::clone(runs), Arc::clone(done));
    Server::new("rounds", "1.0.0")
        .with(Tool::new("two", |context: Context, _: Who| async move {
            let (first, last) = tokio::join!(
                name(&context, "First?".to_owned()),
                name(&context, "Last?".to_owned()),
            );
            Ok::<_, HandlerError>(format!("{} {}", first?, last?))
        }))
        .with(Tool::new("once", move |context: Context, _: Who| {
            let (runs, done) = (Arc::clone(&runs), Arc::clone(&done));
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                let work = async { done.fetch_add(1, Ordering::Relaxed) };
                let number = context.once("work", work).await;
                let first = name(&context, "First?".to_owned()).await?;
                let last = name(&context, "Last?".to_owned()).await?;
                Ok::<_, HandlerError>(format!("{first} {last} {number}"))
            }
        }))
        .with(Tool::new("changes", |context: Context, _: Who| async move {
            // A different question under the same key in every run.
            static RUNS: AtomicUsize = AtomicUsize::new(0);
            let run = RUNS.fetch_add(1, Ordering::Relaxed).min(1);
            name(&context, format!("Who in run {run}?")).await.map_err(HandlerError::from)
        }))
        .with(Tool::new("elsewhere", |context: Context, _: Who| elsewhere(context)))
}

/// Asks from another task, while the handler is already waiting for it.
async fn elsewhere(context: Context) -> Result<String, String> {
    let asking = tokio::spawn(async move {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        name(&context, "Who?".to_owned()).await
    });
    asking.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn start() -> Raw {
    Raw::start(server(&Arc::default(), &Arc::default()))
}

fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// The request again, with answers and the state of the last round.
fn again(tool: &str, responses: Value, state: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": {}, "inputResponses": responses });
    if state.is_string() {
        params["requestState"] = state.clone();
    }
    modern(request(1, "tools/call", params))
}

fn keys(answer: &Value) -> Vec<&str> {
    let asked = answer["result"]["inputRequests"].as_object();
    asked.map(|asked| asked.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[tokio::test]
async fn questions_that_are_asked_together_are_one_round() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "two", json!({})))).await;
    assert_eq!(keys(&asked), ["elicit-1", "elicit-2"]);
    let state = &asked["result"]["requestState"];
    let responses = json!({ "elicit-1": accept("Ada"), "elicit-2": accept("Lovelace") });
    assert_eq!(text(&raw.ask(&again("two", responses, state)).await), "Ada Lovelace");
    // With one of two answers, the other is asked for again and the first is kept.
    let half = raw.ask(&again("two", json!({ "elicit-2": accept("Lovelace") }), state)).await;
    assert_eq!(keys(&half), ["elicit-1"]);
    let state = &half["result"]["requestState"];
    let done = raw.ask(&again("two", json!({ "elicit-1": accept("Ada") }), state)).await;
    assert_eq!(text(&done), "Ada Lovelace");
}

#[tokio::test]
async fn work_is_done_once_however_often_the_handler_runs() {
    let (runs, done) = (Arc::default(), Arc::default());
    let mut raw = Raw::start(server(&runs, &done));
    let mut asked = raw.ask(&modern(call(1, "once", json!({})))).await;
    for (key, name) in [("elicit-1", "Ada"), ("elicit-2", "Lovelace")] {
        assert_eq!(keys(&asked), [key]);
        let state = asked["result"]["requestState"].clone();
        asked = raw.ask(&again("once", json!({ key: accept(name) }), &state)).await;
    }
    assert_eq!(text(&asked), "Ada Lovelace 0");
    assert_eq!((runs.load(Ordering::Relaxed), done.load(Ordering::Relaxed)), (3, 1));
}

#[tokio::test]
async fn an_answer_to_another_question_is_no_answer() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "changes", json!({})))).await;
    let state = &asked["result"]["requestState"];
    let asked = raw.ask(&again("changes", json!({ "elicit-1": accept("Ada") }), state)).await;
    assert_eq!(keys(&asked), ["elicit-1"], "{asked}");
    let state = &asked["result"]["requestState"];
    let done = raw.ask(&again("changes", json!({ "elicit-1": accept("Eve") }), state)).await;
    assert_eq!(text(&done), "Eve");
}

#[tokio::test]
async fn answers_that_come_unasked_are_taken() {
    let mut raw = start();
    let responses = json!({ "elicit-1": accept("Ada"), "elicit-2": accept("Lovelace"), "x": 7 });
    assert_eq!(text(&raw.ask(&again("two", responses, &Value::Null)).await), "Ada Lovelace");
}

/// A client that lost the answer repeats its request.
#[tokio::test]
async fn a_request_may_be_repeated_with_the_same_state() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "two", json!({})))).await;
    let state = &asked["result"]["requestState"];
    let responses = json!({ "elicit-1": accept("Ada"), "elicit-2": accept("Lovelace") });
    for _ in 0..3 {
        let answer = raw.ask(&again("two", responses.clone(), state)).await;
        assert_eq!(text(&answer), "Ada Lovelace");
    }
}

/// Two servers that share a key do not take each other's states.
#[tokio::test]
async fn a_state_belongs_to_the_server_that_issued_it() {
    let keys_of = || KeyRing::from_secrets([[7; 32]]).unwrap();
    let named = |name: &str| {
        let two = Tool::new("two", |context: Context, _: Who| async move {
            name_of(&context).await.map_err(HandlerError::from)
        });
        Raw::start(Server::new(name, "1.0.0").keys(keys_of()).with(two))
    };
    let (mut one, mut twin, mut other) = (named("one"), named("one"), named("other"));
    let asked = one.ask(&modern(call(1, "two", json!({})))).await;
    let state = &asked["result"]["requestState"];
    let again = again("two", json!({ "elicit-1": accept("Ada") }), state);
    assert_eq!(text(&twin.ask(&again).await), "Ada");
    assert_eq!(code(&other.ask(&again).await), -32602);
    assert_eq!(text(&one.ask(&again).await), "Ada");
}

async fn name_of(context: &Context) -> Result<String, AskError> {
    name(context, "Who?".to_owned()).await
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_asked_for_again() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "two", json!({})))).await;
    let state = &asked["result"]["requestState"];
    for odd in [json!(7), json!({}), json!({ "action": "maybe" }), json!(null), json!([])] {
        let responses = json!({ "elicit-1": odd, "elicit-2": accept("Lovelace") });
        let answer = raw.ask(&again("two", responses, state)).await;
        assert_eq!(keys(&answer), ["elicit-1"], "{odd}: {answer}");
    }
    let odd = raw.ask(&again("two", json!([]), state)).await;
    assert_eq!(code(&odd), -32602, "{odd}");
}

#[tokio::test]
async fn a_state_is_good_for_its_request_only() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "two", json!({})))).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let responses = json!({ "elicit-1": accept("Ada"), "elicit-2": accept("Lovelace") });
    // States of another server, tool or arguments; changed, truncated, made up.
    let other = Raw::start(server(&Arc::default(), &Arc::default()))
        .ask(&modern(call(1, "two", json!({}))))
        .await["result"]["requestState"]
        .clone();
    let mut wrong = vec![again("two", responses.clone(), &other)];
    wrong.push(again("once", responses.clone(), &json!(state)));
    let mut arguments = again("two", responses.clone(), &json!(state));
    arguments["params"]["arguments"]["greeting"] = json!("hi");
    wrong.push(arguments);
    for place in [0, state.len() / 2, state.len() - 1] {
        let mut changed = state.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        wrong.push(again("two", responses.clone(), &json!(changed)));
    }
    for made_up in [&state[1..], "", "x", "é", &"A".repeat(100_000)] {
        wrong.push(again("two", responses.clone(), &json!(made_up)));
    }
    for request in wrong {
        let refused = raw.ask(&request).await;
        assert_eq!(code(&refused), -32602, "{refused}");
    }
    assert_eq!(text(&raw.ask(&again("two", responses, &json!(state))).await), "Ada Lovelace");
}

#[tokio::test]
async fn a_state_expires() {
    let limits = Limits { request_state_age: Duration::ZERO, ..Limits::default() };
    let mut raw = Raw::start(server(&Arc::default(), &Arc::default()).limits(limits));
    let asked = raw.ask(&modern(call(1, "two", json!({})))).await;
    // Its age is in whole seconds of the wall clock, which tests cannot set.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let refused = raw.ask(&again("two", json!({}), &asked["result"]["requestState"])).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(code(&refused) == -32602 && message.contains("expired"), "{refused}");
}

/// Regression: a question from a task of the handler was not noticed until the deadline.
#[tokio::test]
async fn a_question_from_a_task_of_its_own_is_put() {
    let mut raw = start();
    let asked = raw.ask(&modern(call(1, "elsewhere", json!({})))).await;
    assert_eq!(keys(&asked), ["elicit-1"], "{asked}");
    let state = &asked["result"]["requestState"];
    let done = raw.ask(&again("elsewhere", json!({ "elicit-1": accept("Ada") }), state)).await;
    assert_eq!(text(&done), "Ada");
}
