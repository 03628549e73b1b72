//! From the JSON of a schema to a list of subschemas.
//!
//! One walk over every location where the standard puts a subschema assigns its index, records its
//! names and reads its keywords. References are resolved once all names are known; a reference to a
//! location where no subschema was expected turns that location into one.

mod expansion;
mod keywords;
mod names;
mod rules;
mod uri;

use std::collections::HashMap;

use serde_json::{Map, Value};

use self::keywords::Keywords;
use self::names::{Names, Scope, Target};
use crate::dialect::Dialect;
use crate::error::SchemaError;
use crate::limits::Limits;
use crate::node::{Node, NodeId, ResourceId, Rule};
use crate::schema::Schema;
use crate::words::cut;

/// How much of a description is kept for messages.
const MAX_DESCRIPTION: usize = 100;

/// The resource that is the whole document.
const ROOT: ResourceId = ResourceId(0);

/// Compiles a schema within the limits.
pub(crate) fn compile(value: &Value, limits: &Limits) -> Result<Schema, SchemaError> {
    // **Invariant:** from here on no recursion over the schema goes deeper than the limit.
    check_depth(value, limits.max_depth)?;
    let mut compiler = Compiler {
        limits,
        nodes: Vec::new(),
        locations: Vec::new(),
        known: HashMap::new(),
        names: Names::default(),
        references: Vec::new(),
        location: "#".to_owned(),
        pattern_memory: limits.max_pattern_memory,
    };
    let root = compiler.node(value, Scope { resource: ROOT, dialect: Dialect::Draft2020 })?;
    compiler.follow_references()?;
    expansion::check(&mut compiler.nodes, &compiler.locations, limits)?;
    let is_dynamic = compiler
        .nodes
        .iter()
        .any(|node| node.rules.iter().any(|rule| matches!(rule, Rule::DynamicRef(..))));
    let dynamic_anchors =
        if is_dynamic { compiler.names.into_dynamic_anchors() } else { HashMap::new() };
    Ok(Schema { nodes: compiler.nodes, root, dynamic_anchors, limits: limits.clone() })
}

struct Compiler<'s> {
    limits: &'s Limits,
    nodes: Vec<Node>,
    /// The location of each node, as a JSON pointer.
    locations: Vec<String>,
    /// Which value became which node, by address.
    known: HashMap<*const Value, NodeId>,
    names: Names<'s>,
    references: Vec<Reference<'s>>,
    /// The current location.
    location: String,
    pattern_memory: usize,
}

/// A reference that waits for its target.
struct Reference<'s> {
    /// The rule to replace, at this index of this node.
    node: NodeId,
    rule: usize,
    keyword: &'static str,
    text: &'s str,
    resource: ResourceId,
}

impl<'s> Compiler<'s> {
    /// The node for a value that is a schema.
    fn node(&mut self, value: &'s Value, scope: Scope) -> Result<NodeId, SchemaError> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(value)) {
            return Ok(*known);
        }
        if self.nodes.len() >= self.limits.max_subschemas {
            let message = format!("has more than {} subschemas", self.limits.max_subschemas);
            return Err(SchemaError::too_big(&self.location, message));
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node::new(scope.resource));
        self.locations.push(self.location.clone());
        self.known.insert(value, id);
        match value {
            Value::Bool(true) => {}
            Value::Bool(false) => self.nodes[id.0].rules.push(Rule::Never),
            Value::Object(map) => self.schema_object(id, value, map, scope)?,
            _ => {
                let message = "a schema must be an object or a boolean";
                return Err(SchemaError::malformed(&self.location, message));
            }
        }
        Ok(id)
    }

    fn schema_object(
        &mut self,
        id: NodeId,
        value: &'s Value,
        map: &'s Map<String, Value>,
        scope: Scope,
    ) -> Result<(), SchemaError> {
        let location = self.location.clone();
        let keywords = Keywords { map, location: &location };
        let scope = self.scope_within(id, value, keywords, scope)?;
        let node = &mut self.nodes[id.0];
        node.resource = scope.resource;
        node.description = map
            .get("description")
            .or_else(|| map.get("title"))
            .and_then(Value::as_str)
            .map(|text| cut(text.trim(), MAX_DESCRIPTION).into());
        node.secret = map.get("writeOnly") == Some(&Value::Bool(true))
            || map.get("format").and_then(Value::as_str) == Some("password");
        for keyword in ["$defs", "definitions"] {
            self.schema_map(keywords, keyword, scope)?;
        }
        self.rules(id, keywords, scope)
    }

    /// The scope inside a schema object; records the names it declares.
    fn scope_within(
        &mut self,
        node: NodeId,
        value: &'s Value,
        keywords: Keywords<'s, '_>,
        mut scope: Scope,
    ) -> Result<Scope, SchemaError> {
        let is_root = node == NodeId(0);
        if let Some(name) = keywords.text("$schema")?
            && (is_root || keywords.find("$id").is_some())
        {
            scope.dialect = Dialect::parse(name)?;
        }
        if scope.dialect.ref_stands_alone() && keywords.find("$ref").is_some() && !is_root {
            return Ok(scope);
        }
        if let Some(id) = keywords.text("$id")?.or_else(|| is_root.then_some("")) {
            let (uri, anchor) = uri::split_fragment(id);
            if !uri.is_empty() || is_root {
                let parent = (!is_root).then_some(scope.resource);
                scope.resource = self.names.add_resource(uri, parent, value, scope.dialect);
            }
            if !anchor.is_empty() {
                self.names.add_anchor(scope.resource, anchor, node);
            }
        }
        if scope.dialect == Dialect::Draft2020 {
            if let Some(name) = keywords.text("$anchor")? {
                self.names.add_anchor(scope.resource, name, node);
            }
            if let Some(name) = keywords.text("$dynamicAnchor")? {
                self.names.add_dynamic_anchor(scope.resource, name, node);
            }
        }
        Ok(scope)
    }

    /// The node for a schema at a keyword.
    fn schema_at(
        &mut self,
        keywords: Keywords<'s, '_>,
        keyword: &str,
        scope: Scope,
    ) -> Result<Option<NodeId>, SchemaError> {
        let Some(value) = keywords.find(keyword) else { return Ok(None) };
        self.within(&[keyword], |compiler| compiler.node(value, scope)).map(Some)
    }

    /// The nodes for an array of schemas at a keyword.
    fn schema_list(
        &mut self,
        keywords: Keywords<'s, '_>,
        keyword: &str,
        scope: Scope,
    ) -> Result<Option<Box<[NodeId]>>, SchemaError> {
        let Some(items) = keywords.array(keyword)? else { return Ok(None) };
        let mut nodes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let node =
                self.within(&[keyword, &index.to_string()], |compiler| compiler.node(item, scope))?;
            nodes.push(node);
        }
        Ok(Some(nodes.into()))
    }

    /// The nodes for an object of schemas at a keyword.
    fn schema_map(
        &mut self,
        keywords: Keywords<'s, '_>,
        keyword: &str,
        scope: Scope,
    ) -> Result<Vec<(&'s str, NodeId)>, SchemaError> {
        let Some(map) = keywords.object(keyword)? else { return Ok(Vec::new()) };
        let mut nodes = Vec::with_capacity(map.len());
        for (name, value) in map {
            let node = self.within(&[keyword, name], |compiler| compiler.node(value, scope))?;
            nodes.push((name.as_str(), node));
        }
        Ok(nodes)
    }

    /// Runs something at a nested location.
    fn within<T>(
        &mut self,
        tokens: &[&str],
        work: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        let outside = self.location.len();
        for token in tokens {
            self.location.push('/');
            self.location
                .push_str(&cut(token, MAX_DESCRIPTION).replace('~', "~0").replace('/', "~1"));
        }
        let result = work(self);
        self.location.truncate(outside);
        result
    }

    fn follow_references(&mut self) -> Result<(), SchemaError> {
        while let Some(reference) = self.references.pop() {
            let at = format!("{}/{}", self.locations[reference.node.0], reference.keyword);
            let missing =
                || SchemaError::Reference { at: at.clone(), reference: reference.text.to_owned() };
            let target =
                self.names.follow(reference.resource, reference.text).ok_or_else(missing)?;
            let target = match target {
                Target::Node(node) => node,
                Target::Place(path, scope) => self.place(&path, scope, &at)?,
            };
            let dynamic = self.names.dynamic_name(reference.resource, reference.text);
            self.nodes[reference.node.0].rules[reference.rule] = match dynamic {
                Some(name) if reference.keyword == "$dynamicRef" => Rule::DynamicRef(name, target),
                _ => Rule::Ref(target),
            };
        }
        Ok(())
    }

    /// The node at the end of a path. Its scope is that of the nearest node on the way.
    fn place(
        &mut self,
        path: &[&'s Value],
        mut scope: Scope,
        at: &str,
    ) -> Result<NodeId, SchemaError> {
        for value in path {
            if let Some(known) = self.known.get(&std::ptr::from_ref(*value)) {
                scope.resource = self.nodes[known.0].resource;
            }
        }
        let value = path.last().expect("a path has at least the root of its resource");
        at.clone_into(&mut self.location);
        self.node(value, scope)
    }
}

fn check_depth(value: &Value, max_depth: usize) -> Result<(), SchemaError> {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > max_depth {
            let message = format!("nests more than {max_depth} levels deep");
            return Err(SchemaError::too_big("#", message));
        }
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => stack.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}
