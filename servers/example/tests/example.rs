//! The example server, as a client sees it.

use std::path::Path;
use std::time::Duration;

use bowline::client::FormAnswer;
use bowline::client::http::Endpoint;
use bowline::{Client, Principal, Revision, Server, testing};
use bowline_serve::testing::{HttpReply, Note, Service, check_manners};
use example::{Settings, Source};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const PROGRAM: &str = env!("CARGO_BIN_EXE_example-server");

fn samples() -> Server {
    example::server(Settings { weather: Source::Sample, ..Settings::default() })
}

fn asking(service: &Service, weather: Source) -> Server {
    let (weather_url, geocoding_url) = (service.url(), format!("{}/", service.url()));
    example::server(Settings { weather, weather_url, geocoding_url })
}

/// A stand-in for Open-Meteo.
fn open_meteo() -> Service {
    Service::start(|asked| {
        let place = |name: &str, admin1: &str, latitude: f64, population: u64| {
            json!({ "name": name, "admin1": admin1, "country": "United States",
                    "latitude": latitude, "longitude": -1.5, "population": population })
        };
        if asked.what.starts_with("GET /v1/search?name=Portland&") {
            let results =
                [place("Portland", "Oregon", 45.5, 630), place("Portland", "Maine", 43.7, 68)];
            return HttpReply::json(&json!({ "results": results }));
        }
        if asked.what.starts_with("GET /v1/search?name=") {
            return HttpReply::json(&json!({ "generationtime_ms": 0.1 }));
        }
        let current = json!({ "time": "2026-11-15T12:00", "interval": 900, "temperature_2m": 7.06,
            "relative_humidity_2m": 91, "weather_code": 63, "wind_speed_10m": 25.2,
            "wind_direction_10m": 181 });
        HttpReply::json(&json!({ "current": current }))
    })
}

#[expect(clippy::unwrap_used, reason = "a test ends where something is missing")]
async fn call(client: &Client, name: &str, arguments: Value) -> (bool, Vec<String>, Value) {
    let result = client.call_tool(name, arguments).await.unwrap();
    let texts = result.content.iter().filter_map(|block| block.as_text()).map(str::to_owned);
    let data = result.structured_content.as_ref().map_or(Value::Null, bowline::Json::to_value);
    (result.is_error == Some(true), texts.collect(), data)
}

#[tokio::test]
async fn it_calculates_and_names_the_unit_of_angles() {
    let client = testing::connect(samples()).await.unwrap();
    let calculate = async |arguments| call(&client, "calculator_arithmetic", arguments).await;
    let (failed, texts, data) = calculate(json!({ "expression": "2 + 3 * 4" })).await;
    assert!(!failed);
    assert_eq!(texts, ["2 + 3 * 4 = 14"]);
    assert_eq!(data, json!({ "expression": "2 + 3 * 4", "result": 14.0, "angles": null }));
    let (_, texts, data) = calculate(json!({ "expression": "sin(30)" })).await;
    assert_eq!(texts, ["sin(30) = 0.5 (angles in degrees)"]);
    assert_eq!(data["angles"], "degrees");
    let (_, texts, _) = calculate(json!({ "expression": "sin(pi/6)", "angles": "radians" })).await;
    assert_eq!(texts, ["sin(pi/6) = 0.5 (angles in radians)"]);
    for (expression, reason) in [
        ("1 / 0", "1 / 0 is undefined: division by zero"),
        ("2 +", "syntax error at character 4: expected a number, a name or (, found the end"),
    ] {
        let (failed, texts, _) = calculate(json!({ "expression": expression })).await;
        assert!(failed);
        assert_eq!(texts, [reason]);
    }
}

#[tokio::test]
async fn a_formula_becomes_a_tool_and_is_removed() {
    let client = testing::connect_in(samples(), Revision::V2025_11_25).await.unwrap();
    let mut notifications = client.notifications();
    let area = json!({ "name": "area", "expression": "pi * r ^ 2", "variables": ["r"] });
    let text = client.call_tool("calculator_define", area).text().await.unwrap();
    assert_eq!(text, "calculator_area is now a tool: pi * r ^ 2");
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name == "calculator_area").unwrap();
    assert_eq!(tool.description.as_deref(), Some("Calculate pi * r ^ 2"));
    let text = client.call_tool("calculator_area", json!({ "r": 2 })).text().await.unwrap();
    assert_eq!(text, "12.5663706143592");
    let (failed, texts, _) = call(&client, "calculator_area", json!({})).await;
    assert!(failed && texts[0].contains('r'), "{texts:?}");
    let forget = json!({ "name": "area" });
    client.call_tool("calculator_forget", &forget).text().await.unwrap();
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    let (failed, texts, _) = call(&client, "calculator_forget", forget).await;
    assert!(failed);
    assert_eq!(texts, [r#"there is no formula called "area"; available: none"#]);
}

#[tokio::test]
async fn bad_formulas_are_rejected() {
    let client = testing::connect(samples()).await.unwrap();
    for (name, expression, variables, reason) in [
        ("define", "1", json!([]), "define is one of the calculator's own tools"),
        ("Area", "1", json!([]), r#"name is "Area": expected a lower case letter"#),
        ("a", "x + y", json!(["x"]), "y is not defined; available: x, abs"),
        ("a", "x", json!(["x", "x"]), "the variable x is listed twice"),
        (
            "a",
            "1",
            json!(["a", "b", "c", "d", "f", "g", "h", "i", "j"]),
            "9 variables, at most 8 are",
        ),
    ] {
        let formula = json!({ "name": name, "expression": expression, "variables": variables });
        let (failed, texts, _) = call(&client, "calculator_define", formula).await;
        assert!(failed && texts[0].contains(reason), "{texts:?}");
    }
}

async fn define(client: &Client, name: &str, expression: &str) -> (bool, Vec<String>) {
    let formula = json!({ "name": name, "expression": expression, "variables": [] });
    let (failed, texts, _) = call(client, "calculator_define", formula).await;
    (failed, texts)
}

#[tokio::test]
async fn the_number_of_formulas_is_bounded() {
    let client = testing::connect(samples()).await.unwrap();
    // All at once: no two of them may pass the same limit.
    let all: Vec<_> = (0..64)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { define(&client, &format!("f{number}"), "1").await })
        })
        .collect();
    let mut defined = 0;
    for one in all {
        let (failed, texts) = one.await.unwrap();
        defined += usize::from(!failed);
        if failed {
            assert_eq!(texts, ["there are already 32 formulas: forget one first"]);
        }
    }
    assert_eq!(defined, 32);
    let tools = client.list_tools().await.unwrap();
    let formulas = tools.iter().filter(|tool| tool.name.starts_with("calculator_f")).count();
    assert_eq!(formulas - 1, 32, "calculator_forget is not a formula");
    let own = tools.iter().find(|tool| tool.name.starts_with("calculator_f")).unwrap();
    let own = own.name.trim_start_matches("calculator_").to_owned();
    if own != "forget" {
        assert!(!define(&client, &own, "2").await.0, "an existing formula may be replaced");
    }
}

/// Serves on loopback until the test ends. Whoever sends `x-user` is known by that name.
#[expect(clippy::unwrap_used, reason = "a test ends where something is missing")]
async fn served() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let http = samples()
        .http()
        .identify(|parts| Some(Principal::new(parts.headers.get("x-user")?.to_str().ok()?)));
    tokio::spawn(http.serve_until(listener, std::future::pending()));
    url
}

/// The formulas that a client sees.
#[expect(clippy::unwrap_used, reason = "a test ends where something is missing")]
async fn formulas(client: &Client) -> Vec<String> {
    let own = ["calculator_arithmetic", "calculator_define", "calculator_forget"];
    let tools = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name);
    tools.filter(|name| name.starts_with("calculator_") && !own.contains(&name.as_str())).collect()
}

#[tokio::test]
async fn formulas_belong_to_the_session_that_defined_them() {
    let url = served().await;
    let connect =
        async || testing::builder(Revision::V2025_11_25).connect(url.as_str()).await.unwrap();
    let (ada, bob) = (connect().await, connect().await);
    assert!(!define(&ada, "secret", "6 * 7").await.0);
    assert_eq!(formulas(&ada).await, ["calculator_secret"]);
    assert_eq!(formulas(&bob).await, [""; 0]);
    let error = bob.call_tool("calculator_secret", json!({})).text().await.unwrap_err();
    assert!(error.to_string().contains("no tool is called \"calculator_secret\""), "{error}");
    let (failed, _, _) = call(&bob, "calculator_forget", json!({ "name": "secret" })).await;
    assert!(failed, "others cannot remove it");
    let (failed, texts) = define(&bob, "secret", "1").await;
    assert!(failed && texts[0].contains("another client has a formula called secret"), "{texts:?}");
    assert_eq!(ada.call_tool("calculator_secret", json!({})).text().await.unwrap(), "42");
    // Every owner has room for 32.
    for number in 0..32 {
        assert!(!define(&bob, &format!("b{number}"), "1").await.0);
    }
    assert!(define(&bob, "b32", "1").await.0);
    assert!(!define(&ada, "more", "1").await.0);
    // The formulas go with their owner, and the name is free again.
    ada.close().await;
    call(&bob, "calculator_forget", json!({ "name": "b0" })).await;
    let freed = async {
        while define(&bob, "secret", "1").await.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), freed).await.unwrap();
    assert!(formulas(&bob).await.contains(&"calculator_secret".to_owned()));
}

#[tokio::test]
async fn formulas_of_modern_clients_belong_to_their_principal() {
    let url = served().await;
    let connect = async |user: Option<&str>| {
        let mut endpoint = Endpoint::new(url.as_str());
        if let Some(user) = user {
            endpoint = endpoint.header("x-user", user);
        }
        testing::builder(Revision::V2026_07_28).connect(endpoint).await.unwrap()
    };
    let (ada, again) = (connect(Some("ada")).await, connect(Some("ada")).await);
    let (bob, nobody, somebody) =
        (connect(Some("bob")).await, connect(None).await, connect(None).await);
    assert!(!define(&ada, "a", "1").await.0);
    assert!(!define(&nobody, "n", "1").await.0);
    assert_eq!(formulas(&ada).await, ["calculator_a"]);
    assert_eq!(formulas(&again).await, ["calculator_a"]);
    assert_eq!(formulas(&bob).await, [""; 0]);
    // Nothing tells them apart, and docs/servers.md says so.
    assert_eq!(formulas(&nobody).await, ["calculator_n"]);
    assert_eq!(formulas(&somebody).await, ["calculator_n"]);
}

#[tokio::test]
async fn sample_data_is_labelled_as_such() {
    let client = testing::connect(samples()).await.unwrap();
    let (_, texts, data) = call(&client, "weather_current", json!({ "location": "Tokyo" })).await;
    let sentence = "Current weather in Tokyo: 18°C, partly cloudy with light winds from the north at 11 km/h. Humidity: 62%";
    let label = "This is sample data for Tokyo, Japan, made up and not measured (";
    assert_eq!(texts.len(), 1, "some clients show only the first block: {texts:?}");
    assert!(texts[0].starts_with(&format!("{sentence}\n{label}")), "{texts:?}");
    assert_eq!((&data["is_sample"], &data["source"]), (&json!(true), &json!("sample")));
    let (failed, texts, _) = call(&client, "weather_current", json!({ "location": "Ys" })).await;
    assert!(failed);
    assert!(texts[0].starts_with(r#"there is no sample for "Ys"; samples exist for San"#));
    let read = client.read_resource("weather://current/Tokyo").await.unwrap();
    assert!(read.contents[0].as_text().unwrap().contains("\"is_sample\": true"));
}

#[tokio::test]
async fn the_service_is_asked_and_named() {
    let service = open_meteo();
    let client = testing::connect(asking(&service, Source::OpenMeteo)).await.unwrap();
    let wanted = json!({ "location": "Portland, Maine", "units": "kelvin" });
    let (failed, texts, data) = call(&client, "weather_current", wanted).await;
    assert!(!failed, "{texts:?}");
    assert_eq!(
        texts,
        [
            "Current weather in Portland: 280 K, rain with moderate winds from the south at 7 m/s. Humidity: 91%\n\
             Portland, Maine, United States, measured at 2026-11-15T12:00 UTC. Source: Open-Meteo.com",
        ]
    );
    assert_eq!((&data["is_sample"], &data["temperature"]), (&json!(false), &json!(280.2)));
    let wanted = json!({ "location": "45,9.5" });
    let (failed, texts, _) = call(&client, "weather_current", wanted).await;
    assert!(!failed, "{texts:?}");
    let asked = service.asked();
    assert!(
        asked
            .last()
            .unwrap()
            .what
            .starts_with("GET /v1/forecast?latitude=45&longitude=9.5&current=")
    );
    let (failed, texts, _) = call(&client, "weather_current", json!({ "location": "Xyz" })).await;
    assert!(failed && texts[0].starts_with(r#"there is no place called "Xyz""#), "{texts:?}");
    for nowhere in ["", "95,0"] {
        let (failed, ..) = call(&client, "weather_current", json!({ "location": nowhere })).await;
        assert!(failed);
    }
}

#[tokio::test]
async fn the_user_chooses_among_places() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let service = open_meteo();
        let builder = testing::builder(revision).on_form(|asked| async move {
            let asked = serde_json::to_value(asked).unwrap();
            let places = asked["requestedSchema"]["properties"]["place"]["enum"].clone();
            let places: Vec<String> = serde_json::from_value(places).unwrap();
            assert_eq!(
                places,
                ["Portland, Oregon, United States", "Portland, Maine, United States"]
            );
            Ok(FormAnswer::accept(&json!({ "place": places[1] })))
        });
        let client = builder.connect(asking(&service, Source::Auto)).await.unwrap();
        let (_, _, data) =
            call(&client, "weather_current", json!({ "location": "Portland" })).await;
        assert_eq!(data["location"], "Portland, Maine, United States", "{revision}");
        let searches = service.asked().iter().filter(|it| it.what.contains("search")).count();
        assert_eq!(searches, 1, "{revision}: a known place is not looked up again");
    }
}

#[tokio::test]
async fn without_elicitation_the_other_places_are_listed() {
    let service = open_meteo();
    for revision in Revision::ALL {
        let server = asking(&service, Source::Auto);
        let client = testing::connect_in(server, revision).await.unwrap();
        let (_, texts, _) =
            call(&client, "weather_current", json!({ "location": "Portland" })).await;
        let expected = "Assuming Portland, Oregon, United States. Other places with that name: Portland, Maine, United States";
        assert_eq!(texts.len(), 1);
        assert_eq!(texts[0].lines().last(), Some(expected), "{revision}");
    }
}

#[tokio::test]
async fn a_service_that_fails_is_replaced_by_samples_only_where_that_is_wanted() {
    let broken = Service::start(|_| HttpReply::error(503, "later"));
    let client = testing::connect(asking(&broken, Source::Auto)).await.unwrap();
    let (failed, texts, data) =
        call(&client, "weather_current", json!({ "location": "Paris" })).await;
    assert!(!failed && data["is_sample"] == true, "{texts:?}");
    assert!(texts[0].contains("the weather service failed: http://127.0.0.1:"), "{texts:?}");
    assert!(texts[0].contains("returned status 503: later"), "{texts:?}");
    let (failed, texts, _) = call(&client, "weather_current", json!({ "location": "Ys" })).await;
    assert!(failed && texts[0].contains("there is no sample for"), "{texts:?}");
    let client = testing::connect(asking(&broken, Source::OpenMeteo)).await.unwrap();
    let (failed, texts, _) = call(&client, "weather_current", json!({ "location": "Paris" })).await;
    assert!(failed && texts[0].starts_with("the weather service failed"), "{texts:?}");
}

#[test]
fn the_program_has_manners() {
    check_manners(PROGRAM, &[], Path::new("testdata/help.txt"));
}

const NOTE: Note = Note {
    sent: include_str!("../testdata/sent.jsonl"),
    answers: include_str!("../testdata/answers.jsonl"),
    seed: "000",
};

#[test]
fn the_seed_note_gets_its_answers() {
    let sentence = "/result/content/0/text";
    let differences = [
        (1, "/result/serverInfo/version", "ours has versions of its own"),
        (3, sentence, "sample data is labelled in the same text"),
    ];
    let ours = NOTE.check(PROGRAM, &["--weather", "sample"], &differences);
    let note: Value = serde_json::from_str(NOTE.answers.lines().last().unwrap()).unwrap();
    let begins = |text: &Value, with: &Value| {
        text.as_str().unwrap().starts_with(&format!("{}\n", with.as_str().unwrap()))
    };
    assert!(begins(ours[2].pointer(sentence).unwrap(), note.pointer(sentence).unwrap()));
    // The note's last request has no answer there.
    assert_eq!(ours[3]["result"], ours[1]["result"]);
}
