//! F: who may use what, and the record of it.

use std::sync::Arc;

use bowline::client::{Client, FormAnswer};
use bowline_gateway::gateway::{Audit, Policy, Rule, Who, verify};
use serde_json::json;

use crate::world::{
    call, connect, known, log, names, plan, records, rule, simple, soon, start, texts,
};

#[tokio::test]
async fn f_nothing_without_a_rule_off_loopback() {
    let mut plan = plan(vec![simple("one", &["a", "b"])]);
    plan.policy.is_open = false;
    let (_gateway, client) = connect(plan).await;
    assert_eq!(names(&client).await, [""; 0]);
    for name in ["one__a", "a"] {
        let told = call(&client, name).await.unwrap_err();
        assert!(told.contains("no tool is called"), "{told}");
    }
}

#[tokio::test]
async fn f51_rules_and_records_are_about_the_servers_own_names_with_an_actor() {
    let path = log("rules");
    let mut plan = plan(vec![simple("one", &["get", "delete"])]);
    plan.servers[0].alias = Some("x".to_owned());
    plan.servers[0].tools.rename = vec![("delete".into(), "get_harmless".into())];
    let rules = vec![rule("ops", &["ops"], &["one/*"], &[]), rule("no", &[], &[], &["*/delete"])];
    plan.policy = Policy { rules, is_open: true, group_claims: texts(&["groups"]) };
    plan.audit = Some(Arc::new(Audit::open(&path).unwrap()));
    let (_gateway, server) = start(plan).await;
    let ann = known(server, "ann", "ops").await;
    assert_eq!(names(&ann).await, ["x__get"]);
    assert_eq!(call(&ann, "x__get").await.unwrap(), "one get");
    assert!(call(&ann, "x__get_harmless").await.is_err());
    let lines = records(&path);
    let call = &lines[1];
    for (member, value) in [
        ("subject", json!("ann")),
        ("server", json!("one")),
        ("name", json!("get")),
        ("asked", json!("x__get")),
        ("decision", json!("allow")),
        ("rule", json!("ops")),
        ("outcome", json!("answered")),
    ] {
        assert_eq!(call[member], value, "{member} of {call}");
    }
    assert_eq!(lines[2]["name"], "delete");
    assert_eq!(lines[2]["decision"], "deny");
    assert_eq!(lines[2]["rule"], "no");
    assert_eq!(verify(&path).unwrap().0, 3);
}

#[tokio::test]
async fn f_callers_of_other_groups_see_nothing() {
    let mut plan = plan(vec![simple("one", &["get"])]);
    let rules = vec![rule("ops", &["ops"], &["one/*"], &[])];
    plan.policy = Policy { rules, is_open: true, group_claims: texts(&["groups"]) };
    let (_gateway, server) = start(plan).await;
    let bob = known(server, "bob", "dev").await;
    assert_eq!(names(&bob).await, [""; 0]);
    assert!(call(&bob, "one__get").await.is_err());
}

fn answer(agrees: bool) -> FormAnswer {
    let filled = serde_json::Map::from_iter([("confirm".to_owned(), json!(true))]);
    if agrees { FormAnswer::Accept(filled) } else { FormAnswer::Decline }
}

#[tokio::test]
async fn f_marked_tools_ask_the_user_first_in_both_eras() {
    use bowline::client::Preference;
    for preference in [Preference::Legacy, Preference::Modern] {
        for agrees in [true, false] {
            let mut plan = plan(vec![simple("one", &["merge", "get"])]);
            let rule = Rule {
                allow: texts(&["one/*"]),
                confirm: texts(&["one/merge"]),
                ..Rule::default()
            };
            plan.policy = Policy { rules: vec![rule], ..Policy::default() };
            let (_gateway, server) = start(plan).await;
            let client = Client::builder("test", "1").preference(preference);
            let client = client.on_form(move |_| std::future::ready(Ok(answer(agrees))));
            let client = client.connect(server).await.unwrap();
            assert_eq!(call(&client, "one__get").await.unwrap(), "one get");
            let merged = call(&client, "one__merge").await;
            match agrees {
                true => assert_eq!(merged.unwrap(), "one merge"),
                false => assert!(format!("{merged:?}").contains("did not agree"), "{merged:?}"),
            }
        }
    }
}

#[tokio::test]
async fn f_marked_tools_do_not_run_where_nobody_can_be_asked() {
    let mut plan = plan(vec![simple("one", &["merge"])]);
    let rule = Rule { confirm: texts(&["one/merge"]), ..Rule::default() };
    plan.policy = Policy { rules: vec![rule], ..Policy::default() };
    let (_gateway, client) = connect(plan).await;
    let told = format!("{:?}", call(&client, "one__merge").await);
    assert!(told.contains("cannot ask the user"), "{told}");
}

#[tokio::test]
async fn the_rounds_of_a_call_count_once_and_what_did_not_run_is_recorded_so() {
    use bowline::client::Preference;
    for (agrees, ended) in [(true, "answered"), (false, "declined")] {
        let path = log(ended);
        let mut plan = plan(vec![simple("one", &["merge"])]);
        plan.servers[0].rate = Some("1/h".parse().unwrap());
        let rule = Rule { confirm: texts(&["one/merge"]), ..Rule::default() };
        plan.policy = Policy { rules: vec![rule], ..Policy::default() };
        plan.audit = Some(Arc::new(Audit::open(&path).unwrap()));
        let (_gateway, server) = start(plan).await;
        let client = Client::builder("test", "1").preference(Preference::Modern);
        let client = client.on_form(move |_| std::future::ready(Ok(answer(agrees))));
        let client = client.connect(server).await.unwrap();
        let merged = call(&client, "one__merge").await;
        match agrees {
            true => assert_eq!(merged.unwrap(), "one merge"),
            false => assert!(format!("{merged:?}").contains("did not agree"), "{merged:?}"),
        }
        let told = format!("{:?}", call(&client, "one__merge").await);
        assert!(told.contains("try again in"), "{told}");
        let outcomes: Vec<_> =
            records(&path).iter().skip(1).map(|it| it["outcome"].clone()).collect();
        assert_eq!(outcomes, [ended, "limited"]);
    }
}

#[tokio::test]
async fn state_that_is_sent_again_counts_again() {
    use bowline::client::Preference;
    use std::sync::Mutex;
    let mut plan = plan(vec![simple("one", &["merge"])]);
    plan.servers[0].rate = Some("1/h".parse().unwrap());
    let rule = Rule { confirm: texts(&["one/merge"]), ..Rule::default() };
    plan.policy = Policy { rules: vec![rule], ..Policy::default() };
    let (_gateway, server) = start(plan).await;
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let client = Client::builder("test", "1")
        .preference(Preference::Modern)
        .on_form(|_| std::future::ready(Ok(answer(true))))
        .on_wire(move |message| seen.lock().unwrap().push(message.bytes.to_vec()));
    let client = client.connect(server).await.unwrap();
    assert_eq!(call(&client, "one__merge").await.unwrap(), "one merge");
    let frames = sent.lock().unwrap().clone();
    let requests = frames.iter().filter_map(|it| serde_json::from_slice(it).ok());
    let mut retries = requests.filter(|it: &serde_json::Value| {
        it["method"] == "tools/call" && it["params"]["requestState"].is_string()
    });
    let params = retries.next().expect("the answer was sent back")["params"].clone();
    let again = soon(client.call_json("tools/call", params).once()).await;
    assert!(format!("{again:?}").contains("try again in"), "{again:?}");
}

#[tokio::test]
async fn explanations_are_about_what_is_served() {
    let mut plan = plan(vec![simple("one", &["get", "delete"])]);
    plan.servers[0].tools.deny = texts(&["delete"]);
    let clients = texts(&["robot"]);
    let allow = texts(&["one/*"]);
    plan.policy.rules = vec![Rule { name: "robots".to_owned(), clients, allow, ..Rule::default() }];
    let (gateway, _client) = connect(plan).await;
    let robot = Who { client: Some("robot".to_owned()), ..Who::default() };
    for (who, tool, is_allowed, rule) in [
        (&robot, "one__get", true, "robots"),
        (&robot, "one/get", true, "robots"),
        (&Who::default(), "one/get", false, "no rule allows it"),
        (&robot, "one/delete", false, "there is no such tool now"),
        (&robot, "one/nothing", false, "there is no such tool now"),
        (&robot, "nothing", false, "no rule allows it"),
    ] {
        let (_, decision) = gateway.explain(who, tool);
        assert_eq!((decision.is_allowed, decision.rule.as_str()), (is_allowed, rule), "{tool}");
    }
}

#[tokio::test]
async fn rate_limits_tell_a_model_when_to_come_back() {
    let mut plan = plan(vec![simple("one", &["get"])]);
    plan.servers[0].rate = Some("2/h".parse().unwrap());
    let (gateway, client) = connect(plan).await;
    for _ in 0..2 {
        assert_eq!(call(&client, "one__get").await.unwrap(), "one get");
    }
    let told = format!("{:?}", call(&client, "one__get").await);
    assert!(told.contains("try again in 1800 seconds"), "{told}");
    let metrics = gateway.metrics();
    assert!(metrics.contains("bowline_gateway_rate_limited_total 1"), "{metrics}");
    let counted = "mcp_method_name=\"tools/call\",gen_ai_tool_name=\"get\",bowline_server=\"one\"";
    assert!(metrics.contains(counted), "{metrics}");
}
