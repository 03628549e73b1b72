//! Items of lists: tools, resources, templates, prompts, and a client's roots.

use serde_json::Value;

use super::wrap::{describes_object, wrap_schema};
use super::{Adapt, Unsupported, only, since};
use crate::json::Json;
use crate::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Root, Tool};
use crate::revision::Revision::{self, *};

impl Adapt for Tool {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        since(V2025_03_26, to, &mut self.annotations);
        since(V2025_06_18, to, &mut self.output_schema);
        since(V2025_11_25, to, &mut self.icons);
        since(V2025_06_18, to, &mut self.meta);
        only(V2025_11_25, to, &mut self.execution);
        if to < V2026_07_28 {
            spell_out_booleans(&mut self.input_schema);
            if let Some(schema) = &mut self.output_schema {
                spell_out_booleans(schema);
                // Structured content had to be an object.
                if !describes_object(&schema.to_value()) {
                    *schema = wrap_schema(schema.to_value()).into();
                }
            }
        }
        Ok(())
    }
}

/// Up to 2025-11-25 the schema of a property must be an object: `true` and `false` are written as
/// equivalent objects.
fn spell_out_booleans(schema: &mut Json) {
    let mut tree = schema.to_value();
    let Some(Value::Object(properties)) = tree.get_mut("properties") else {
        return;
    };
    let mut changed = false;
    for property in properties.values_mut() {
        if let Value::Bool(anything) = *property {
            changed = true;
            *property = if anything {
                Value::Object(serde_json::Map::new())
            } else {
                serde_json::json!({ "not": {} })
            };
        }
    }
    if changed {
        *schema = tree.into();
    }
}

impl Adapt for Resource {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        since(V2025_11_25, to, &mut self.icons);
        since(V2025_06_18, to, &mut self.meta);
        self.annotations.adapt(to)
    }
}

impl Adapt for ResourceTemplate {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        since(V2025_11_25, to, &mut self.icons);
        since(V2025_06_18, to, &mut self.meta);
        self.annotations.adapt(to)
    }
}

impl Adapt for Prompt {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        since(V2025_11_25, to, &mut self.icons);
        since(V2025_06_18, to, &mut self.meta);
        self.arguments.adapt(to)
    }
}

impl Adapt for PromptArgument {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        Ok(())
    }
}

impl Adapt for Root {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.meta);
        Ok(())
    }
}
