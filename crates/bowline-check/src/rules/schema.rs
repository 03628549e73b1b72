//! The schemas of tools: valid, and accepted by well-known clients and model providers.

use bowline::Revision::V2025_06_18;
use bowline_schema::{Schema, SchemaError};
use serde_json::Value;

use super::lint::{self, BOTH, INPUT};
use super::{each, name};
use crate::probe::{Outcome, Probe, TOOLS, skip};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("server/tools");
    Must "schema.input-object" => each(probe, TOOLS, |tool| not_object(tool, "inputSchema")),
        "inputSchema has type object",
        "Set \"type\": \"object\" in inputSchema; for no arguments add \"additionalProperties\": false.";
    Must "schema.valid" => each(probe, TOOLS, |tool| uncompiled(tool, is_invalid)),
        "schemas are valid JSON Schema",
        "Fix the schema; the dialect is 2020-12 unless $schema names another.";
    Must "schema.output-object" [.since(V2025_06_18).legacy()] => outputs(probe),
        "outputSchema has type object",
        "Set \"type\": \"object\" in outputSchema; other types need 2026-07-28.";
    Portability "schema.dialect" => each(probe, TOOLS, |tool| uncompiled(tool, |error| matches!(error, SchemaError::Dialect(_)))),
        "schemas use a dialect that clients know",
        "Use JSON Schema 2020-12 (no $schema needed) or draft-07.";
    Portability "schema.patterns" => each(probe, TOOLS, |tool| uncompiled(tool, |error| matches!(error, SchemaError::Pattern { .. }))),
        "patterns are plain regular expressions",
        "Avoid look-around and back-references: linear-time validators reject them.";
    Portability "schema.remote-ref" => lint::run(probe, INPUT, lint::remote_ref),
        "no $ref points outside the schema",
        "Put what is referenced into $defs; clients must not fetch it.";
    Portability "schema.ref" => lint::run(probe, INPUT, lint::local_ref),
        "schemas do not use $ref",
        "Inline the referenced parts: some clients and providers do not follow $ref and show no fields.";
    Portability "schema.root-union" => lint::run(probe, INPUT, lint::root_union),
        "the root has no anyOf, oneOf, allOf, not, enum or if",
        "Move choices into a property: providers reject them at the root, and forms show no fields.";
    Portability "schema.properties" => lint::run(probe, INPUT, lint::no_properties),
        "objects at the root have properties",
        "Add \"properties\": {} even if there are no arguments: some clients reject a schema without it.";
    Portability "schema.property-names" => lint::run(probe, INPUT, lint::property_names),
        "property names have up to 64 letters, digits, _, -, .",
        "Rename the properties: providers reject requests with other characters in them.";
    Portability "schema.array-items" => lint::run(probe, INPUT, lint::array_items),
        "arrays have items",
        "Add items to each array: some clients and providers reject an array without it.";
    Portability "schema.keywords" => lint::run(probe, INPUT, lint::keywords),
        "schemas use keywords that providers know",
        "Say it in the description as well, or avoid these keywords: providers ignore or reject them.";
    Portability "schema.type-list" => lint::run(probe, INPUT, lint::type_list),
        "type is one word, not a list",
        "Leave optional properties out of required instead of adding null to their type.";
    Portability "schema.enums" => lint::run(probe, INPUT, lint::enums),
        "enums contain strings, without null",
        "List strings only, with \"type\": \"string\"; leave optional properties out of required.";
    Portability "schema.const-union" => lint::run(probe, INPUT, lint::const_union),
        "a choice of values is an enum, not a union of constants",
        "Write \"enum\": […] with \"type\": \"string\", and explain the values in the description: many clients lose the values of oneOf and const.";
    Portability "schema.formats" => lint::run(probe, BOTH, lint::undefined_format),
        "formats are those that JSON Schema defines",
        "Remove the format and say it with minimum, maximum or the description: some clients reject the whole list of tools, others warn for each field.";
    Info "schema.rare-formats" => lint::run(probe, INPUT, lint::rare_format),
        "formats are those that model providers know",
        "Explain the format in the description: providers ignore or reject rare ones.";
    Portability "schema.depth" => lint::run(probe, INPUT, lint::depth),
        "schemas are at most 5 levels deep, with at most 100 properties",
        "Flatten the arguments: strict modes of providers reject more.";
    Portability "schema.undescribed" => lint::run(probe, INPUT, lint::undescribed),
        "arguments have descriptions",
        "Describe each argument: the description is all that a model knows about it.";
}

async fn outputs(probe: &mut Probe) -> Outcome {
    if probe.list(TOOLS).await?.iter().all(|tool| tool.get("outputSchema").is_none()) {
        return skip("no tool has an outputSchema");
    }
    each(probe, TOOLS, |tool| not_object(tool, "outputSchema")).await
}

pub(super) fn not_object(tool: &Value, member: &str) -> Option<String> {
    let kind = &tool.get(member)?["type"];
    (kind != "object").then(|| format!("{}: {member}.type is {kind}", name(tool)))
}

/// The schemas of a tool that do not compile for such a reason.
pub(super) fn uncompiled(tool: &Value, is_it: fn(&SchemaError) -> bool) -> Option<String> {
    let problem = |member: &str| {
        let error = Schema::compile(tool.get(member)?).err().filter(is_it)?;
        Some(format!("{}: {member}: {error}", name(tool)))
    };
    let problems: Vec<_> =
        ["inputSchema", "outputSchema"].into_iter().filter_map(problem).collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

pub(super) fn is_invalid(error: &SchemaError) -> bool {
    match error {
        SchemaError::Malformed { .. } | SchemaError::Endless { .. } => true,
        SchemaError::Reference { reference, .. } => reference.starts_with('#'),
        _ => false,
    }
}
