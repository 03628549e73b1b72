//! The names of the subschemas of one document: `$id`, `$anchor`, `$dynamicAnchor`, pointers.

use std::collections::HashMap;

use serde_json::Value;

use super::uri;
use crate::dialect::Dialect;
use crate::node::{DynamicName, NodeId, ResourceId};
use crate::reference::{decode, step};

/// The scope of a subschema: which identifiers and which rules apply there.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) resource: ResourceId,
    pub(super) dialect: Dialect,
}

/// A part of the document with its own identifier; the whole document is one.
struct Resource<'s> {
    uri: String,
    root: &'s Value,
    dialect: Dialect,
}

/// What a reference resolves to.
pub(super) enum Target<'s> {
    Node(NodeId),
    /// A location by pointer: the values on the way, ending with the target.
    Place(Vec<&'s Value>, Scope),
}

/// Every name of the document.
#[derive(Default)]
pub(super) struct Names<'s> {
    resources: Vec<Resource<'s>>,
    by_uri: HashMap<String, ResourceId>,
    anchors: HashMap<(ResourceId, String), NodeId>,
    dynamic_names: HashMap<String, DynamicName>,
    dynamic_anchors: HashMap<(ResourceId, DynamicName), NodeId>,
}

impl<'s> Names<'s> {
    /// Adds a resource, with an `id` relative to `parent`.
    pub(super) fn add_resource(
        &mut self,
        id: &str,
        parent: Option<ResourceId>,
        root: &'s Value,
        dialect: Dialect,
    ) -> ResourceId {
        let base = parent.map_or("", |parent| self.resources[parent.0].uri.as_str());
        let uri = uri::resolve(base, id);
        let resource = ResourceId(self.resources.len());
        self.by_uri.entry(uri.clone()).or_insert(resource);
        self.resources.push(Resource { uri, root, dialect });
        resource
    }

    pub(super) fn add_anchor(&mut self, resource: ResourceId, name: &str, node: NodeId) {
        self.anchors.entry((resource, name.to_owned())).or_insert(node);
    }

    pub(super) fn add_dynamic_anchor(&mut self, resource: ResourceId, name: &str, node: NodeId) {
        self.add_anchor(resource, name, node);
        let next = DynamicName(self.dynamic_names.len());
        let name = *self.dynamic_names.entry(name.to_owned()).or_insert(next);
        self.dynamic_anchors.entry((resource, name)).or_insert(node);
    }

    /// Resolves a reference found in `resource`.
    pub(super) fn follow(&self, resource: ResourceId, reference: &str) -> Option<Target<'s>> {
        let (resource, fragment) = self.locate(resource, reference)?;
        let fragment = decode(fragment)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.get(&(resource, fragment.into_owned())).copied().map(Target::Node);
        }
        let Resource { root, dialect, .. } = self.resources[resource.0];
        let mut path = vec![root];
        for token in fragment.split('/').skip(1) {
            path.push(step(path.last()?, token)?);
        }
        Some(Target::Place(path, Scope { resource, dialect }))
    }

    /// The dynamic anchor that a reference names, if it names one.
    pub(super) fn dynamic_name(
        &self,
        resource: ResourceId,
        reference: &str,
    ) -> Option<DynamicName> {
        let (resource, fragment) = self.locate(resource, reference)?;
        let name = *self.dynamic_names.get(fragment)?;
        self.dynamic_anchors.contains_key(&(resource, name)).then_some(name)
    }

    pub(super) fn into_dynamic_anchors(self) -> HashMap<(ResourceId, DynamicName), NodeId> {
        self.dynamic_anchors
    }

    fn locate<'r>(
        &self,
        resource: ResourceId,
        reference: &'r str,
    ) -> Option<(ResourceId, &'r str)> {
        let (uri, fragment) = uri::split_fragment(reference);
        if uri.is_empty() {
            return Some((resource, fragment));
        }
        let uri = uri::resolve(&self.resources[resource.0].uri, uri);
        self.by_uri.get(&uri).map(|found| (*found, fragment))
    }
}
