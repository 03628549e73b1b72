//! The schemas of tools: valid, and such that well-known clients and model providers take them.

use bowline::Revision;
use bowline_schema::{Schema, SchemaError};
use serde_json::Value;

use super::lint;
use super::tools::name;
use crate::check::probe::{Outcome, Probe, TOOLS, all_good, skip};
use crate::check::table::Check;

const PAGE: &str = "server/tools";

pub(super) const CHECKS: &[Check] = &[
    Check::must("schema.input-object", "inputSchema is of type object", |probe| {
        Box::pin(input_object(probe))
    })
    .page(PAGE)
    .fix("Let inputSchema say \"type\": \"object\"; for no arguments add \"additionalProperties\": false."),
    Check::must("schema.valid", "schemas are valid JSON Schema", |probe| Box::pin(valid(probe)))
        .page(PAGE)
        .fix("Mend the schema; 2020-12 is the dialect unless $schema names another."),
    Check::must("schema.output-object", "outputSchema is of type object", |probe| {
        Box::pin(output_object(probe))
    })
    .since(Revision::V2025_06_18)
    .legacy()
    .page(PAGE)
    .fix("Let outputSchema say \"type\": \"object\"; other types are for 2026-07-28 only."),
    Check::portability("schema.dialect", "schemas are of a dialect that clients know", |probe| {
        Box::pin(dialect(probe))
    })
    .page(PAGE)
    .fix("Use JSON Schema 2020-12 (no $schema needed) or draft-07."),
    Check::portability("schema.patterns", "patterns are plain regular expressions", |probe| {
        Box::pin(patterns(probe))
    })
    .page(PAGE)
    .fix("Do without look-around and back-references: validators with linear time refuse them."),
    Check::portability("schema.remote-ref", "no $ref leads out of the schema", |probe| {
        Box::pin(lint::run(probe, lint::remote_ref))
    })
    .page(PAGE)
    .fix("Put what is referred to into $defs; clients must not fetch."),
    Check::portability("schema.ref", "schemas do without $ref", |probe| {
        Box::pin(lint::run(probe, lint::local_ref))
    })
    .page(PAGE)
    .fix("Write the parts out in place: some clients and providers do not follow $ref and show no fields."),
    Check::portability("schema.root-union", "the root has no anyOf, oneOf, allOf, not, enum or if", |probe| {
        Box::pin(lint::run(probe, lint::root_union))
    })
    .page(PAGE)
    .fix("Move choices into a property: providers refuse them at the root, and forms show no fields."),
    Check::portability("schema.properties", "objects at the root have properties", |probe| {
        Box::pin(lint::run(probe, lint::no_properties))
    })
    .page(PAGE)
    .fix("Add \"properties\": {} even where there are no arguments: some clients refuse a schema without."),
    Check::portability("schema.property-names", "names of properties are up to 64 letters, digits, _, -, .", |probe| {
        Box::pin(lint::run(probe, lint::property_names))
    })
    .page(PAGE)
    .fix("Rename the properties: providers refuse a request with other characters in them."),
    Check::portability("schema.array-items", "arrays say what is in them", |probe| {
        Box::pin(lint::run(probe, lint::array_items))
    })
    .page(PAGE)
    .fix("Add items to each array: some clients and providers refuse an array without."),
    Check::portability("schema.keywords", "schemas use keywords that providers know", |probe| {
        Box::pin(lint::run(probe, lint::keywords))
    })
    .page(PAGE)
    .fix("Say it in the description as well, or without these keywords: providers ignore or refuse them."),
    Check::portability("schema.type-list", "types are one word, not a list", |probe| {
        Box::pin(lint::run(probe, lint::type_list))
    })
    .page(PAGE)
    .fix("Leave optional properties out of required instead of adding null to their type."),
    Check::portability("schema.enums", "enums are of strings, without null", |probe| {
        Box::pin(lint::run(probe, lint::enums))
    })
    .page(PAGE)
    .fix("List strings only, with \"type\": \"string\"; leave optional ones out of required."),
    Check::info("schema.formats", "formats are those that everybody knows", |probe| {
        Box::pin(lint::run(probe, lint::formats))
    })
    .page(PAGE)
    .fix("Say in the description what the format means: providers ignore or refuse ones they do not know."),
    Check::portability("schema.depth", "schemas are at most 5 levels deep, with at most 100 properties", |probe| {
        Box::pin(lint::run(probe, lint::depth))
    })
    .page(PAGE)
    .fix("Flatten the arguments: strict modes of providers refuse more."),
    Check::portability("schema.undescribed", "arguments say what they are for", |probe| {
        Box::pin(lint::run(probe, lint::undescribed))
    })
    .page(PAGE)
    .fix("Describe each argument: the description is all that a model has to go by."),
];

async fn input_object(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    all_good(tools.iter().filter_map(|tool| not_object(tool, "inputSchema")).collect())
}

async fn output_object(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let mut with_output = tools.iter().filter(|tool| tool.get("outputSchema").is_some()).peekable();
    if with_output.peek().is_none() {
        return skip("no tool has an outputSchema");
    }
    all_good(with_output.filter_map(|tool| not_object(tool, "outputSchema")).collect())
}

fn not_object(tool: &Value, member: &str) -> Option<String> {
    let kind = tool.get(member)?.get("type").cloned().unwrap_or_default();
    (kind != "object").then(|| format!("{}: {member}.type is {kind}", name(tool)))
}

/// What the compiler says of each schema.
async fn compiled(probe: &mut Probe, pick: fn(&SchemaError) -> bool) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let mut problems = Vec::new();
    for tool in &tools {
        for member in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(member) else { continue };
            if let Some(error) = Schema::compile(schema).err().filter(pick) {
                problems.push(format!("{}: {member}: {error}", name(tool)));
            }
        }
    }
    all_good(problems)
}

async fn valid(probe: &mut Probe) -> Outcome {
    let is_invalid = |error: &SchemaError| match error {
        SchemaError::Malformed { .. } | SchemaError::Endless { .. } => true,
        SchemaError::Reference { reference, .. } => reference.starts_with('#'),
        _ => false,
    };
    compiled(probe, is_invalid).await
}

async fn dialect(probe: &mut Probe) -> Outcome {
    compiled(probe, |error| matches!(error, SchemaError::Dialect(_))).await
}

async fn patterns(probe: &mut Probe) -> Outcome {
    compiled(probe, |error| matches!(error, SchemaError::Pattern { .. })).await
}
