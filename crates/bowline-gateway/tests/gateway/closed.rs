//! What the door keeps shut: rules that cannot be walked around, agreements that are good for one
//! run, and what callers learn of what they may not use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bowline::client::{Client, FormAnswer, Preference, Wanted};
use bowline::http::Mounted;
use bowline::{Completing, Context, Prompt, Resource, Server, Tool};
use bowline_gateway::gateway::{Audit, Plan, Policy, Rule, ServerPlan};
use serde_json::{Value, json};

use crate::world::{
    call, connect, dead, known, log, names, plan, records, rule, server, simple, soon, start,
    texts, until,
};

/// A server that reads any file, and counts what it reads.
fn files(read: &Arc<AtomicUsize>) -> ServerPlan {
    let read = Arc::clone(read);
    server("files", move || {
        let read = Arc::clone(&read);
        let template = bowline::model::ResourceTemplate {
            uri_template: "file:///{+path}".to_owned(),
            name: "file".to_owned(),
            ..Default::default()
        };
        let handler = move |_: Context, uri: String| {
            read.fetch_add(1, Ordering::SeqCst);
            async move { uri }
        };
        let file = Resource::template_from_model(template, handler).allow_unsafe_values();
        Ok(Server::new("files", "1").with(file))
    })
}

fn with_rules(servers: Vec<ServerPlan>, rules: Vec<Rule>) -> Plan {
    let mut plan = plan(servers);
    plan.policy = Policy { rules, is_open: false, group_claims: texts(&["groups"]) };
    plan
}

async fn read(client: &Client, uri: &str) -> Result<String, String> {
    let read = soon(client.read_resource(uri)).await;
    read.map(|it| format!("{it:?}")).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn a_denied_uri_is_denied_in_every_spelling_although_a_template_fits_it() {
    let count = Arc::new(AtomicUsize::new(0));
    let path = log("spellings");
    let mut plan = with_rules(
        vec![files(&count)],
        vec![rule("r", &[], &["files/*"], &["files/file:///etc/*"])],
    );
    plan.audit = Some(Arc::new(Audit::open(&path).unwrap()));
    let (_gateway, client) = connect(plan).await;
    assert!(read(&client, "file:///pub/a").await.is_ok());
    for uri in [
        "file:///etc/passwd",
        "file:///pub/../etc/passwd",
        "file:///pub/%2e%2e/etc/passwd",
        "file:///%65tc/passwd",
        "file:////etc/passwd",
    ] {
        let told = read(&client, uri).await.unwrap_err();
        assert!(told.contains("unknown resource"), "{uri}: {told}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let lines = records(&path);
    let first = &lines[1];
    assert_eq!(first["server"], "files", "{first}");
    assert_eq!(first["name"], "file:///pub/a");
    assert_eq!(first["rule"], "r");
}

#[tokio::test]
async fn an_allowed_part_of_a_template_is_no_more_than_that() {
    let count = Arc::new(AtomicUsize::new(0));
    let allow = &["files/file:///{+path}", "files/file:///pub/*"];
    let (_gateway, client) =
        connect(with_rules(vec![files(&count)], vec![rule("r", &[], allow, &[])])).await;
    assert!(read(&client, "file:///pub/a").await.is_ok());
    for uri in ["file:///etc/passwd", "file:///pub/../etc/passwd", "file:///pub/%2e%2e/x"] {
        assert!(read(&client, uri).await.is_err(), "{uri}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

fn talker() -> ServerPlan {
    server("talk", || {
        let prompt = |name: &str| {
            Prompt::new(name, |_: Context, _: Word| async { "said" })
                .complete("word", |_: Completing| async { vec!["secret".to_owned()] })
        };
        Ok(Server::new("talk", "1")
            .with(prompt("a:hidden"))
            .with(prompt("open"))
            .with(Resource::text("memo://one", "one", "text"))
            .with(Resource::text("memo://two", "two", "text")))
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    #[expect(dead_code, reason = "only its name matters")]
    word: String,
}

#[tokio::test]
async fn completion_follows_the_rules_of_what_it_completes() {
    let rules = vec![rule("r", &[], &["talk/*"], &["talk/a:*"])];
    let (_gateway, client) = connect(with_rules(vec![talker()], rules)).await;
    let complete =
        async |prompt: &str| soon(client.complete_prompt(prompt, ("word", ""), &[])).await;
    assert!(format!("{:?}", complete("talk__open").await.unwrap()).contains("secret"));
    let told = format!("{:?}", complete("talk__a:hidden").await.unwrap_err());
    assert!(told.contains("no prompt is called"), "{told}");
}

fn agreeing() -> FormAnswer {
    FormAnswer::Accept(serde_json::Map::from_iter([("confirm".to_owned(), json!(true))]))
}

/// A client that counts the questions that its user sees, and what it was asked.
async fn asked(server: Server, preference: Preference, agrees: bool) -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let client = Client::builder("test", "1").preference(preference).on_form(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = if agrees { agreeing() } else { FormAnswer::Decline };
        std::future::ready(Ok(answer))
    });
    (client.connect(server).await.unwrap(), count)
}

#[tokio::test]
async fn what_is_marked_asks_first_whatever_it_is() {
    for preference in [Preference::Legacy, Preference::Modern] {
        for agrees in [true, false] {
            let confirm = Rule { confirm: texts(&["talk/*"]), ..Rule::default() };
            let (_gateway, server) = start(with_rules(vec![talker()], vec![confirm])).await;
            let (client, count) = asked(server, preference, agrees).await;
            let got = soon(client.get_prompt("talk__open", &[("word", "x")])).await;
            assert_eq!(got.is_ok(), agrees, "{preference:?} {got:?}");
            let got = soon(client.read_resource("memo://one")).await;
            assert_eq!(got.is_ok(), agrees, "{preference:?} {got:?}");
            assert_eq!(count.load(Ordering::SeqCst), 2, "{preference:?}");
            let completed =
                soon(client.complete_prompt("talk__open", ("word", ""), &[])).await.unwrap();
            assert!(!format!("{completed:?}").contains("secret"), "{completed:?}");
        }
    }
}

#[tokio::test]
async fn an_agreement_is_good_for_one_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let merging = server("one", move || {
        let counted = Arc::clone(&counted);
        let merge = Tool::new("merge", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "merged" }
        });
        Ok(Server::new("one", "1").with(merge))
    });
    let confirm = Rule { confirm: texts(&["one/*"]), ..Rule::default() };
    let (_gateway, server) = start(with_rules(vec![merging], vec![confirm])).await;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let client = Client::builder("test", "1")
        .preference(Preference::Modern)
        .on_form(|_| std::future::ready(Ok(agreeing())))
        .on_wire(move |message| seen.lock().unwrap().push(message.bytes.to_vec()));
    let client = client.connect(server).await.unwrap();
    assert_eq!(call(&client, "one__merge").await.unwrap(), "merged");
    let frames = sent.lock().unwrap().clone();
    let texts = frames.iter().map(|it| String::from_utf8_lossy(it).into_owned());
    let requests = texts.filter_map(|it| serde_json::from_str::<Value>(&it).ok());
    let retry = requests
        .filter(|it| it["method"] == "tools/call")
        .find(|it| it["params"]["requestState"].is_string())
        .expect("the answer was sent back");
    // The same state and answer again: nothing runs.
    let again = soon(client.call_json("tools/call", retry["params"].clone()).once()).await;
    let told = format!("{again:?}");
    assert!(told.contains("was used"), "{told}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // An answer to a question that nobody asked is not an answer.
    let mut params = retry["params"].clone();
    params.as_object_mut().unwrap().remove("requestState");
    let unasked = soon(client.call_json("tools/call", params).once()).await;
    assert!(format!("{unasked:?}").contains("requestState"), "{unasked:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Keeps what a server is asked to watch.
fn note(seen: &Mutex<Vec<String>>, incoming: &bowline::Incoming) {
    if incoming.method.contains("ubscri") {
        let params = incoming.params.as_ref().map(ToString::to_string);
        seen.lock().unwrap().extend(params);
    }
}

#[tokio::test]
async fn changes_of_hidden_resources_are_not_heard_and_not_asked_for() {
    for preference in [Preference::Legacy, Preference::Modern] {
        let wanted = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&wanted);
        let (keep, registries) = std::sync::mpsc::channel();
        let watched = server("talk", move || {
            let seen = Arc::clone(&seen);
            let watch = move |incoming: bowline::Incoming, next: bowline::Next| {
                note(&seen, &incoming);
                next.run(incoming)
            };
            let server = Server::new("talk", "1")
                .middleware(watch)
                .with(Resource::text("memo://open", "open", "text"))
                .with(Resource::text("memo://hidden", "hidden", "text"));
            keep.send(server.registry()).unwrap();
            Ok(server)
        });
        let rules = vec![rule("r", &[], &["talk/memo://open"], &[])];
        let (_gateway, server) = start(with_rules(vec![watched], rules)).await;
        let registry = registries.recv().unwrap();
        let client = Client::builder("test", "1").preference(preference);
        let client = client.connect(server).await.unwrap();
        let listen = async |uri: &str| {
            let mut changes = client.changes(Wanted::new().resource(uri)).await.ok()?;
            until(async || {
                registry.resource_updated(uri);
                wanted.lock().unwrap().iter().any(|it: &String| it.contains(uri))
            })
            .await;
            registry.resource_updated(uri);
            soon(changes.next()).await?.ok()
        };
        assert!(listen("memo://open").await.is_some(), "{preference:?}");
        for uri in ["memo://hidden", "memo://nothing"] {
            let refused = soon(client.changes(Wanted::new().resource(uri))).await;
            assert!(refused.is_err(), "{preference:?} {uri}");
        }
        let asked = wanted.lock().unwrap().concat();
        assert!(!asked.contains("hidden") && !asked.contains("nothing"), "{asked}");
    }
}

#[tokio::test]
async fn what_callers_may_not_use_looks_like_what_does_not_exist() {
    let servers =
        vec![simple("one", &["get", "same"]), simple("two", &["same", "own"]), dead("three")];
    let rules =
        vec![rule("ops", &["ops"], &["one/*"], &[]), rule("dev", &["dev"], &["two/*"], &[])];
    let (gateway, server) = start(with_rules(servers, rules)).await;
    let ann = known(server, "ann", "ops").await;
    assert_eq!(names(&ann).await, ["one__get", "one__same"]);
    for (hidden, missing) in [("two__own", "two__owx"), ("own", "owx")] {
        let [hidden_told, missing_told] =
            [call(&ann, hidden).await.unwrap_err(), call(&ann, missing).await.unwrap_err()];
        assert_eq!(hidden_told.replace(hidden, missing), missing_told);
    }
    let told = call(&ann, "same").await.unwrap_err();
    assert!(told.contains("one__same") && !told.contains("two"), "{told}");
    let Some(Mounted::Json(status, text)) = gateway.mounted("/ready") else { panic!() };
    assert_eq!((status.as_u16(), text.as_slice()), (200, &b"{\"ready\":true}"[..]));
}

#[tokio::test]
async fn causes_are_told_to_those_who_may_use_the_server() {
    let plan = || {
        let rules =
            vec![rule("ops", &["ops"], &["one/*"], &[]), rule("none", &["none"], &["x/*"], &[])];
        with_rules(vec![dead("one"), dead("two")], rules)
    };
    let told = async |group: &str| {
        let (_gateway, server) = start(plan()).await;
        let client = known(server, "somebody", group).await;
        soon(client.list_tools().without_cache()).await.map_err(|error| format!("{error:?}"))
    };
    let ops = told("ops").await.unwrap_err();
    assert!(ops.contains("one: it is broken") && !ops.contains("two"), "{ops}");
    assert_eq!(told("none").await.unwrap().len(), 0);
}
