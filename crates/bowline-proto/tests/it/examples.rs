//! The examples of the specification: each is read into its type and written back without loss.

use std::path::Path;

use bowline_proto::members::RawMembers;
use bowline_proto::method::*;
use bowline_proto::model::*;
use bowline_proto::wire::Id;
use serde_json::{Value, json};

use crate::examples_own::OWN;
use crate::shared::{path, same};
use crate::typed::*;

/// How to read and write an example, by the name of its type in `schema.ts`.
type RoundTrip = fn(&str) -> Written;

#[rustfmt::skip]
const TYPES: &[(&str, RoundTrip)] = &[
    ("AudioContent", value::<ContentBlock>),
    ("BlobResourceContents", value::<ResourceContents>),
    ("BooleanSchema", value::<PrimitiveSchema>),
    ("CallToolRequest", request::<CallTool>),
    ("CallToolRequestParams", params::<CallTool>),
    ("CallToolResult", result::<CallTool>),
    ("CallToolResultResponse", response::<CallTool>),
    ("CancelledNotification", notification::<Cancelled>),
    ("CancelledNotificationParams", value::<CancelledParams>),
    ("ClientCapabilities", value::<ClientCapabilities>),
    ("CompleteRequest", request::<Complete>),
    ("CompleteRequestParams", params::<Complete>),
    ("CompleteResult", result::<Complete>),
    ("CompleteResultResponse", response::<Complete>),
    // Input requests of the modern era have no envelope.
    ("CreateMessageRequest", value::<InputRequest>),
    ("CreateMessageRequestParams", params::<CreateMessage>),
    ("CreateMessageResult", value::<CreateMessageResult>),
    ("DiscoverRequest", request::<Discover>),
    ("DiscoverResult", result::<Discover>),
    ("DiscoverResultResponse", response::<Discover>),
    ("ElicitRequest", value::<InputRequest>),
    ("ElicitRequestFormParams", params::<ElicitationCreate>),
    ("ElicitRequestURLParams", params::<ElicitationCreate>),
    ("ElicitResult", value::<ElicitResult>),
    ("EmbeddedResource", value::<ContentBlock>),
    ("GetPromptRequest", request::<GetPrompt>),
    ("GetPromptRequestParams", params::<GetPrompt>),
    ("GetPromptResult", result::<GetPrompt>),
    ("GetPromptResultResponse", response::<GetPrompt>),
    ("HeaderMismatchError", error_response::<-32020>),
    ("ImageContent", value::<ContentBlock>),
    ("InputRequests", value::<InputRequests>),
    ("InputRequiredResult", result::<CallTool>),
    ("InputResponses", answers),
    ("InternalError", error::<-32603>),
    ("InvalidParamsError", error::<-32602>),
    ("ListPromptsRequest", request::<ListPrompts>),
    ("ListPromptsResult", result::<ListPrompts>),
    ("ListPromptsResultResponse", response::<ListPrompts>),
    ("ListResourceTemplatesRequest", request::<ListResourceTemplates>),
    ("ListResourceTemplatesResult", result::<ListResourceTemplates>),
    ("ListResourceTemplatesResultResponse", response::<ListResourceTemplates>),
    ("ListResourcesRequest", request::<ListResources>),
    ("ListResourcesResult", result::<ListResources>),
    ("ListResourcesResultResponse", response::<ListResources>),
    ("ListRootsRequest", value::<InputRequest>),
    ("ListRootsResult", value::<ListRootsResult>),
    ("ListToolsRequest", request::<ListTools>),
    ("ListToolsResult", result::<ListTools>),
    ("ListToolsResultResponse", response::<ListTools>),
    ("LoggingMessageNotification", notification::<LoggingMessage>),
    ("LoggingMessageNotificationParams", value::<LoggingMessageParams>),
    ("MethodNotFoundError", error::<-32601>),
    ("MissingRequiredClientCapabilityError", error_response::<-32021>),
    ("ModelPreferences", value::<ModelPreferences>),
    ("NumberSchema", value::<PrimitiveSchema>),
    ("PaginatedRequestParams", params::<ListTools>),
    ("ParseError", error::<-32700>),
    ("ProgressNotification", notification::<Progress>),
    ("ProgressNotificationParams", value::<ProgressParams>),
    ("PromptListChangedNotification", notification::<PromptListChanged>),
    ("ReadResourceRequest", request::<ReadResource>),
    ("ReadResourceResult", result::<ReadResource>),
    ("ReadResourceResultResponse", response::<ReadResource>),
    ("Resource", value::<Resource>),
    ("ResourceLink", value::<ContentBlock>),
    ("ResourceListChangedNotification", notification::<ResourceListChanged>),
    ("ResourceUpdatedNotification", notification::<ResourceUpdated>),
    ("ResourceUpdatedNotificationParams", value::<ResourceUpdatedParams>),
    ("Root", value::<Root>),
    ("SamplingMessage", value::<SamplingMessage>),
    ("ServerCapabilities", value::<ServerCapabilities>),
    ("StringSchema", value::<PrimitiveSchema>),
    ("SubscriptionsAcknowledgedNotification", notification::<SubscriptionsAcknowledged>),
    ("SubscriptionsListenRequest", request::<SubscriptionsListen>),
    ("SubscriptionsListenResult", result::<SubscriptionsListen>),
    ("SubscriptionsListenResultResponse", response::<SubscriptionsListen>),
    ("TextContent", value::<ContentBlock>),
    ("TextResourceContents", value::<ResourceContents>),
    ("TitledMultiSelectEnumSchema", value::<PrimitiveSchema>),
    ("TitledSingleSelectEnumSchema", value::<PrimitiveSchema>),
    ("Tool", value::<Tool>),
    ("ToolListChangedNotification", notification::<ToolListChanged>),
    ("ToolResultContent", value::<SamplingContent>),
    ("ToolUseContent", value::<SamplingContent>),
    ("UnsupportedProtocolVersionError", error_response::<-32022>),
    ("UntitledMultiSelectEnumSchema", value::<PrimitiveSchema>),
    ("UntitledSingleSelectEnumSchema", value::<PrimitiveSchema>),
];

/// The number of examples in 2026-07-28.
const COUNT: usize = 129;

/// Examples that are not written back as they were read, and why.
fn expected(file: &str, mut example: Value) -> Value {
    if file == "ListRootsRequest/list-roots-request.json" {
        // The schema of `ListRootsRequest` has no id: its response is found by the key in
        // `inputRequests`. The example still has one from its former envelope.
        assert_eq!(example["id"], json!("list-roots-example"));
        example.as_object_mut().unwrap().remove("id");
    }
    example
}

/// Responses are typed by their requests, which are in the example next to this one.
fn answers(text: &str) -> Written {
    let answers: RawMembers<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut written = serde_json::Map::new();
    for (key, raw) in answers.iter() {
        let answer = match key {
            "github_login" => value::<ElicitResult>(raw.get())?,
            "capital_of_france" => value::<CreateMessageResult>(raw.get())?,
            "folders" => value::<ListRootsResult>(raw.get())?,
            _ => return Err(format!("{key} was not requested")),
        };
        written.insert(key.to_owned(), answer);
    }
    Ok(written.into())
}

fn check(kind: &str, name: &str, text: &str) -> Result<(), String> {
    let Some((_, round_trip)) = TYPES.iter().find(|(known, _)| *known == kind) else {
        return Err(format!("{name}: the type {kind} is not in the table"));
    };
    let read: Value = serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?;
    let written = round_trip(text).map_err(|error| format!("{name}: {error}"))?;
    let expected = expected(name, read);
    if same(&written, &expected) {
        return Ok(());
    }
    Err(format!("{name}:\n   read {expected}\nwritten {written}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(entry).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn official_examples_are_read_and_written() {
    let Some(folder) = path("spec/examples") else { return };
    let (mut count, mut wrong) = (0, Vec::new());
    for kind in names(&folder) {
        for file in names(&folder.join(&kind)) {
            let name = format!("{kind}/{file}");
            let text = std::fs::read_to_string(folder.join(&name)).unwrap();
            count += 1;
            match check(&kind, &name, &text) {
                Ok(()) => println!("{name}"),
                Err(error) => wrong.push(error),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(count, COUNT);
}

#[test]
fn own_examples_are_read_and_written() {
    let wrong: Vec<_> =
        OWN.iter().filter_map(|(kind, text)| check(kind, kind, text).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (kind, _) in TYPES {
        assert!(OWN.iter().any(|(own, _)| own == kind), "{kind} has no example of our own");
    }
}

#[test]
fn keys_reserved_in_meta_are_read() {
    let text = r#"{"io.modelcontextprotocol/subscriptionId":"listen-1","progressToken":7}"#;
    let meta: Meta = serde_json::from_str(text).unwrap();
    assert_eq!(meta.subscription_id(), Some(Id::from("listen-1")));
    assert_eq!(meta.progress_token(), Some(7_i64.into()));
    assert_eq!(meta.server_info(), None);
    // Two readers could pick different ones.
    let twice = r#"{"name":"t","_meta":{"progressToken":1,"progressToken":2}}"#;
    let rejected = params::<CallTool>(twice).unwrap_err();
    assert_eq!(rejected, "tools/call: params._meta.progressToken appears twice");
}
