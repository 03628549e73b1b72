//! A compiled schema: a list of subschemas that refer to each other by index, each a list of rules.

use serde_json::{Number, Value};

use crate::number::is_integer;
use crate::pattern::Pattern;

/// The index of a subschema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

/// The index of a part of the document that has its own identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId(pub(crate) usize);

/// The index of a name that a `$dynamicAnchor` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DynamicName(pub(crate) usize);

/// One subschema.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) resource: ResourceId,
    pub(crate) types: Types,
    pub(crate) rules: Vec<Rule>,
    /// Applied last, to whatever no other rule has evaluated.
    pub(crate) unevaluated: Option<Box<Unevaluated>>,
    /// Messages never repeat the values here.
    pub(crate) secret: bool,
    pub(crate) description: Option<Box<str>>,
}

/// What `unevaluatedItems` and `unevaluatedProperties` say.
#[derive(Debug)]
pub(crate) struct Unevaluated {
    pub(crate) items: Option<NodeId>,
    pub(crate) properties: Option<NodeId>,
}

/// What one keyword, or a group of keywords that belong together, demands of a value.
///
/// A rule passes for values of types that it says nothing about.
#[derive(Debug)]
pub(crate) enum Rule {
    /// `false`: nothing passes.
    Never,
    /// `enum`; `const` is one with a single choice.
    OneOfValues(Box<[Value]>),
    Bound(Bound, Number),
    MultipleOf(Number),
    Count(Counted, Bound, u64),
    Pattern(Box<Pattern>),
    Items(Box<Items>),
    Contains(Box<Contains>),
    UniqueItems,
    /// Each with its schema under `properties`, for the message.
    Required(Box<[(Box<str>, Option<NodeId>)]>),
    Properties(Box<Properties>),
    PropertyNames(NodeId),
    DependentRequired(Box<[Dependency]>),
    DependentSchemas(Box<[(Box<str>, NodeId)]>),
    Ref(NodeId),
    DynamicRef(DynamicName, NodeId),
    AllOf(Box<[NodeId]>),
    AnyOf(Box<[NodeId]>),
    OneOf(Box<[NodeId]>),
    Not(NodeId),
    If(Box<If>),
}

/// On which side of a limit a number must lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
}

/// What can be counted in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Characters,
    Items,
    Properties,
}

#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) prefix: Box<[NodeId]>,
    pub(crate) rest: Option<NodeId>,
}

#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) node: NodeId,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

#[derive(Debug)]
pub(crate) struct Properties {
    /// Sorted by name.
    pub(crate) named: Box<[(Box<str>, NodeId)]>,
    pub(crate) patterns: Box<[(Pattern, NodeId)]>,
    pub(crate) additional: Option<NodeId>,
}

/// A member, and the members that it requires.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: Box<str>,
    pub(crate) needs: Box<[Box<str>]>,
}

#[derive(Debug)]
pub(crate) struct If {
    pub(crate) condition: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

impl Node {
    pub(crate) fn new(resource: ResourceId) -> Self {
        Self {
            resource,
            types: Types::ANY,
            rules: Vec::new(),
            unevaluated: None,
            secret: false,
            description: None,
        }
    }

    /// Whether this is the schema `false`.
    pub(crate) fn is_never(&self) -> bool {
        matches!(self.rules.as_slice(), [Rule::Never])
    }

    /// The subschemas that apply to the same value as this one.
    pub(crate) fn in_place(&self) -> Vec<NodeId> {
        let mut found = Vec::new();
        for rule in &self.rules {
            match rule {
                Rule::Ref(node) | Rule::Not(node) => found.push(*node),
                Rule::AllOf(nodes) | Rule::AnyOf(nodes) | Rule::OneOf(nodes) => {
                    found.extend_from_slice(nodes);
                }
                Rule::If(rule) => {
                    found.push(rule.condition);
                    found.extend(rule.then);
                    found.extend(rule.otherwise);
                }
                Rule::DependentSchemas(list) => found.extend(list.iter().map(|(_, node)| *node)),
                _ => {}
            }
        }
        found
    }
}

impl Properties {
    pub(crate) fn find(&self, name: &str) -> Option<NodeId> {
        let at = self.named.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(self.named[at].1)
    }
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

const INTEGER: u8 = 1 << 2;
const NUMBER: u8 = 1 << 3;

/// The types by name, each with its bit and with words for a message.
const TYPES: [(&str, u8, &str); 7] = [
    ("string", 1 << 4, "a string"),
    ("integer", INTEGER, "an integer"),
    ("number", NUMBER, "a number"),
    ("boolean", 1 << 1, "a boolean"),
    ("array", 1 << 5, "an array"),
    ("object", 1 << 6, "an object"),
    ("null", 1, "null"),
];

impl Types {
    pub(crate) const ANY: Self = Self(0x7f);
    pub(crate) const NONE: Self = Self(0);

    /// This set and the type of that name, if there is such a type.
    pub(crate) fn with(self, name: &str) -> Option<Self> {
        let (_, bit, _) = TYPES.iter().find(|(known, ..)| *known == name)?;
        Some(Self(self.0 | bit))
    }

    pub(crate) fn contains(self, value: &Value) -> bool {
        match value {
            Value::Null => self.0 & 1 != 0,
            Value::Bool(_) => self.0 & (1 << 1) != 0,
            Value::Number(number) => {
                self.0 & NUMBER != 0 || (self.0 & INTEGER != 0 && is_integer(number))
            }
            Value::String(_) => self.0 & (1 << 4) != 0,
            Value::Array(_) => self.0 & (1 << 5) != 0,
            Value::Object(_) => self.0 & (1 << 6) != 0,
        }
    }

    /// `a string`, `null`; empty if every type is allowed.
    pub(crate) fn words(self) -> impl Iterator<Item = &'static str> {
        let own = if self == Self::ANY { 0 } else { self.0 };
        // Any number includes integers; naming both would confuse.
        let own = if own & NUMBER != 0 { own & !INTEGER } else { own };
        TYPES.iter().filter(move |(_, bit, _)| own & bit != 0).map(|(.., words)| *words)
    }
}
