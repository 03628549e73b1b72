//! The rules of one schema object, keyword by keyword.

use serde_json::Value;

use super::keywords::Keywords;
use super::names::Scope;
use super::{Compiler, Reference};
use crate::dialect::Dialect;
use crate::error::SchemaError;
use crate::node::{
    Bound, Contains, Counted, Dependency, If, Items, NodeId, Properties, Rule, Unevaluated,
};
use crate::pattern::Pattern;

const BOUNDS: [(&str, Bound); 4] = [
    ("minimum", Bound::AtLeast),
    ("exclusiveMinimum", Bound::MoreThan),
    ("maximum", Bound::AtMost),
    ("exclusiveMaximum", Bound::LessThan),
];

const COUNTS: [(&str, Counted, Bound); 6] = [
    ("minLength", Counted::Characters, Bound::AtLeast),
    ("maxLength", Counted::Characters, Bound::AtMost),
    ("minItems", Counted::Items, Bound::AtLeast),
    ("maxItems", Counted::Items, Bound::AtMost),
    ("minProperties", Counted::Properties, Bound::AtLeast),
    ("maxProperties", Counted::Properties, Bound::AtMost),
];

impl<'s> Compiler<'s> {
    /// Reads every keyword. Cheap rules come first, so that an invalid value fails fast.
    pub(super) fn rules(
        &mut self,
        id: NodeId,
        keywords: Keywords<'s, '_>,
        scope: Scope,
    ) -> Result<(), SchemaError> {
        if scope.dialect.ref_stands_alone() && keywords.find("$ref").is_some() {
            return self.reference(id, "$ref", keywords, scope);
        }
        let types = keywords.types()?;
        let mut rules = Vec::new();
        self.flat_rules(keywords, &mut rules)?;
        self.array_rules(keywords, scope, &mut rules)?;
        self.object_rules(keywords, scope, &mut rules)?;
        self.combining_rules(keywords, scope, &mut rules)?;
        let node = &mut self.nodes[id.0];
        node.types = types;
        node.rules = rules;
        self.reference(id, "$ref", keywords, scope)?;
        if scope.dialect == Dialect::Draft2020 {
            self.reference(id, "$dynamicRef", keywords, scope)?;
            let items = self.schema_at(keywords, "unevaluatedItems", scope)?;
            let properties = self.schema_at(keywords, "unevaluatedProperties", scope)?;
            if items.is_some() || properties.is_some() {
                self.nodes[id.0].unevaluated = Some(Box::new(Unevaluated { items, properties }));
            }
        }
        Ok(())
    }

    fn reference(
        &mut self,
        node: NodeId,
        keyword: &'static str,
        keywords: Keywords<'s, '_>,
        scope: Scope,
    ) -> Result<(), SchemaError> {
        let Some(text) = keywords.text(keyword)? else { return Ok(()) };
        let rules = &mut self.nodes[node.0].rules;
        let rule = rules.len();
        // A placeholder until the target is known.
        rules.push(Rule::Never);
        self.references.push(Reference { node, rule, keyword, text, resource: scope.resource });
        Ok(())
    }

    fn flat_rules(
        &mut self,
        keywords: Keywords<'s, '_>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaError> {
        if let Some(value) = keywords.find("const") {
            rules.push(Rule::OneOfValues(Box::new([value.clone()])));
        }
        if let Some(choices) = keywords.array("enum")? {
            rules.push(Rule::OneOfValues(choices.into()));
        }
        for (keyword, bound) in BOUNDS {
            if let Some(limit) = keywords.number(keyword)? {
                rules.push(Rule::Bound(bound, limit.clone()));
            }
        }
        if let Some(divisor) = keywords.number("multipleOf")? {
            if divisor.as_f64().is_none_or(|divisor| divisor <= 0.0) {
                let at = format!("{}/multipleOf", keywords.location);
                return Err(SchemaError::malformed(
                    at,
                    format!("is {divisor}; expected more than 0"),
                ));
            }
            rules.push(Rule::MultipleOf(divisor.clone()));
        }
        for (keyword, counted, bound) in COUNTS {
            if let Some(limit) = keywords.count(keyword)? {
                rules.push(Rule::Count(counted, bound, limit));
            }
        }
        if let Some(text) = keywords.text("pattern")? {
            let pattern = self.pattern(text, || format!("{}/pattern", keywords.location))?;
            rules.push(Rule::Pattern(Box::new(pattern)));
        }
        Ok(())
    }

    /// Compiles a pattern within the memory that earlier patterns left.
    fn pattern(&mut self, text: &str, at: impl Fn() -> String) -> Result<Pattern, SchemaError> {
        if text.len() > self.limits.max_pattern_length {
            let message =
                format!("the pattern is longer than {} bytes", self.limits.max_pattern_length);
            return Err(SchemaError::too_big(at(), message));
        }
        let pattern = Pattern::compile(text, self.pattern_memory).map_err(|message| {
            SchemaError::Pattern { at: at(), pattern: text.to_owned(), message }
        })?;
        match self.pattern_memory.checked_sub(pattern.memory()) {
            Some(left) => self.pattern_memory = left,
            None => {
                let message = format!(
                    "the patterns together take more than {} bytes when compiled",
                    self.limits.max_pattern_memory
                );
                return Err(SchemaError::too_big(at(), message));
            }
        }
        Ok(pattern)
    }

    fn array_rules(
        &mut self,
        keywords: Keywords<'s, '_>,
        scope: Scope,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaError> {
        let (prefix, rest) = match keywords.find("items") {
            Some(Value::Array(_)) if scope.dialect < Dialect::Draft2020 => {
                (Some("items"), "additionalItems")
            }
            Some(Value::Array(_)) => {
                let at = format!("{}/items", keywords.location);
                let message = "is an array; 2020-12 calls that `prefixItems`";
                return Err(SchemaError::malformed(at, message));
            }
            _ if scope.dialect < Dialect::Draft2020 => (None, "items"),
            _ => (Some("prefixItems"), "items"),
        };
        let prefix = match prefix {
            Some(keyword) => self.schema_list(keywords, keyword, scope)?.unwrap_or_default(),
            None => Box::default(),
        };
        let rest = self.schema_at(keywords, rest, scope)?;
        if !prefix.is_empty() || rest.is_some() {
            rules.push(Rule::Items(Box::new(Items { prefix, rest })));
        }
        if let Some(node) = self.schema_at(keywords, "contains", scope)? {
            let counts = scope.dialect == Dialect::Draft2020;
            let least = if counts { keywords.count("minContains")? } else { None };
            let most = if counts { keywords.count("maxContains")? } else { None };
            let (least, most) = (least.unwrap_or(1), most.unwrap_or(u64::MAX));
            rules.push(Rule::Contains(Box::new(Contains { node, least, most })));
        }
        if keywords.flag("uniqueItems")? {
            rules.push(Rule::UniqueItems);
        }
        Ok(())
    }

    fn object_rules(
        &mut self,
        keywords: Keywords<'s, '_>,
        scope: Scope,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaError> {
        let mut named: Vec<(Box<str>, NodeId)> = Vec::new();
        for (name, node) in self.schema_map(keywords, "properties", scope)? {
            named.push((name.into(), node));
        }
        named.sort();
        if let Some(names) = keywords.names("required")?
            && !names.is_empty()
        {
            let find = |name: &str| named.iter().find(|(known, _)| known.as_ref() == name);
            let names = names.into_iter().map(|name| (find(&name).map(|(_, node)| *node), name));
            rules.push(Rule::Required(names.map(|(node, name)| (name, node)).collect()));
        }
        let mut patterns = Vec::new();
        for (text, node) in self.schema_map(keywords, "patternProperties", scope)? {
            let at = || format!("{}/patternProperties", keywords.location);
            patterns.push((self.pattern(text, at)?, node));
        }
        let additional = self.schema_at(keywords, "additionalProperties", scope)?;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            let (named, patterns) = (named.into(), patterns.into());
            rules.push(Rule::Properties(Box::new(Properties { named, patterns, additional })));
        }
        if let Some(node) = self.schema_at(keywords, "propertyNames", scope)? {
            rules.push(Rule::PropertyNames(node));
        }
        self.dependent_rules(keywords, scope, rules)
    }

    fn dependent_rules(
        &mut self,
        keywords: Keywords<'s, '_>,
        scope: Scope,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaError> {
        let mut required = Vec::new();
        let mut schemas: Vec<(Box<str>, NodeId)> = Vec::new();
        // The old keyword is two in one. 2020-12 tolerates it, so authors keep using it.
        for (name, value) in keywords.object("dependencies")?.into_iter().flatten() {
            if let Value::Array(names) = value {
                let needs = keywords.read_names("dependencies", names)?;
                required.push(Dependency { name: name.as_str().into(), needs });
            } else {
                let node =
                    self.within(&["dependencies", name], |compiler| compiler.node(value, scope))?;
                schemas.push((name.as_str().into(), node));
            }
        }
        if scope.dialect == Dialect::Draft2020 {
            for (name, value) in keywords.object("dependentRequired")?.into_iter().flatten() {
                let Value::Array(names) = value else {
                    return Err(keywords.wrong("dependentRequired", value, "an array"));
                };
                let needs = keywords.read_names("dependentRequired", names)?;
                required.push(Dependency { name: name.as_str().into(), needs });
            }
            for (name, node) in self.schema_map(keywords, "dependentSchemas", scope)? {
                schemas.push((name.into(), node));
            }
        }
        if !required.is_empty() {
            rules.push(Rule::DependentRequired(required.into()));
        }
        if !schemas.is_empty() {
            rules.push(Rule::DependentSchemas(schemas.into()));
        }
        Ok(())
    }

    fn combining_rules(
        &mut self,
        keywords: Keywords<'s, '_>,
        scope: Scope,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaError> {
        if let Some(node) = self.schema_at(keywords, "not", scope)? {
            rules.push(Rule::Not(node));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(nodes) = self.schema_list(keywords, keyword, scope)? else { continue };
            if nodes.is_empty() {
                let at = format!("{}/{keyword}", keywords.location);
                return Err(SchemaError::malformed(at, "is empty"));
            }
            rules.push(match keyword {
                "allOf" => Rule::AllOf(nodes),
                "anyOf" => Rule::AnyOf(nodes),
                _ => Rule::OneOf(nodes),
            });
        }
        if scope.dialect > Dialect::Draft6 {
            let condition = self.schema_at(keywords, "if", scope)?;
            let then = self.schema_at(keywords, "then", scope)?;
            let otherwise = self.schema_at(keywords, "else", scope)?;
            if let Some(condition) = condition {
                rules.push(Rule::If(Box::new(If { condition, then, otherwise })));
            }
        }
        Ok(())
    }
}
