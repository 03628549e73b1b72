//! A schema applied to a value, within a budget.
//!
//! The same code runs twice at most. First quietly: it stops at the first rule that is broken and
//! allocates nothing. Only for a value that does not pass it runs again and keeps going, to tell
//! what is wrong in words.

mod array;
mod combine;
mod equal;
mod flat;
mod marks;
mod object;
mod place;
mod report;

use serde_json::Value;

use self::marks::Marks;
use self::place::{Place, is_within};
use self::report::{Finding, Report};
use crate::node::{Node, NodeId, ResourceId, Rule};
use crate::schema::Schema;
use crate::violation::{Invalid, Violations};

/// How many steps it takes to say what is wrong.
const STEPS_TO_TELL: u64 = 40;

/// How many steps it takes to find what was meant among what is allowed.
const STEPS_TO_FIND_CLOSEST: u64 = 400;

/// One run of a schema over a value.
pub(crate) struct Evaluation<'s> {
    schema: &'s Schema,
    steps_left: u64,
    depth: usize,
    /// The resources we are in, outermost first; kept only for dynamic references.
    scopes: Vec<ResourceId>,
    /// Where violations go; none while nobody wants to know.
    report: Option<Report>,
    /// What messages call the root, once there are messages to make.
    root: Option<&'s str>,
    /// Paths at which no value may be repeated.
    secrets: Vec<String>,
}

/// Why a run ended early.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    OutOfSteps,
    TooDeep,
}

impl<'s> Evaluation<'s> {
    pub(crate) fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            steps_left: schema.limits.max_steps,
            depth: 0,
            scopes: Vec::new(),
            report: None,
            root: None,
            secrets: Vec::new(),
        }
    }

    /// Whether the value passes.
    pub(crate) fn passes(&mut self, value: &Value) -> Result<bool, Invalid> {
        self.apply(self.schema.root, &Place::root(value), None).map_err(|stop| match stop {
            Stop::OutOfSteps => Invalid::TooCostly { max_steps: self.schema.limits.max_steps },
            Stop::TooDeep => {
                Invalid::TooDeep { max_nested_steps: self.schema.limits.max_nested_steps }
            }
        })
    }

    /// How many steps were taken.
    pub(crate) fn spent(&self) -> u64 {
        self.schema.limits.max_steps - self.steps_left
    }

    /// What is wrong with a value that does not pass.
    pub(crate) fn explain(mut self, root: &'s str, value: &Value) -> Violations {
        self.root = Some(root);
        self.report = Some(Report::default());
        let place = Place::root(value);
        // If the budget ends, what was found so far is told.
        self.steps_left /= 2;
        let _ = self.apply(self.schema.root, &place, None);
        let mut report = self.report.take().unwrap_or_default();
        if report.is_empty() {
            report.add(Finding::about(&place, root).saying(", which its schema does not allow"));
        }
        let secrets = &self.secrets;
        report.into_violations(|path| secrets.iter().any(|secret| is_within(path, secret)))
    }

    /// Applies a subschema to the value at a place, and marks what it looked at.
    fn apply<'v>(
        &mut self,
        id: NodeId,
        place: &Place<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        self.spend(1)?;
        let schema = self.schema;
        let node = &schema.nodes[id.0];
        if let (Some(root), true) = (self.root, node.secret) {
            self.secrets.push(place.path(root));
        }
        if !node.types.contains(place.value) {
            self.find(|root| Finding::about(place, root).of_type().allowing(node.types.words()));
            return Ok(false);
        }
        if node.rules.is_empty() && node.unevaluated.is_none() {
            return Ok(true);
        }
        let is_dynamic = !schema.dynamic_anchors.is_empty();
        let enters = is_dynamic && self.scopes.last() != Some(&node.resource);
        if enters {
            self.scopes.push(node.resource);
        }
        let verdict = self.deeper(|own| own.apply_rules(node, place, marks));
        if enters {
            self.scopes.pop();
        }
        verdict
    }

    fn apply_rules<'v>(
        &mut self,
        node: &'s Node,
        place: &Place<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        // A subschema sees its own marks and those of its parts, never those of its neighbours.
        let mut own = (marks.is_some() || node.unevaluated.is_some()).then(Marks::default);
        let mut passes = true;
        for rule in &node.rules {
            if !self.apply_rule(rule, place, own.as_mut())? {
                passes = false;
                if self.report.is_none() {
                    return Ok(false);
                }
            }
        }
        // After a failure too little is marked, and more would be reported than is wrong.
        if let (Some(unevaluated), Some(own), true) = (&node.unevaluated, own.as_mut(), passes) {
            if let Some(rest) = unevaluated.items {
                passes = self.unevaluated_items(rest, place, own)?;
            }
            if let Some(rest) = unevaluated.properties {
                passes &= self.unevaluated_properties(rest, place, own)?;
            }
        }
        if let (Some(marks), Some(own), true) = (marks, own, passes) {
            self.spend(own.len() as u64)?;
            marks.merge(own);
        }
        Ok(passes)
    }

    fn apply_rule<'v>(
        &mut self,
        rule: &'s Rule,
        place: &Place<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        match (rule, place.value) {
            (Rule::Ref(node), _) => self.apply(*node, place, marks),
            (Rule::DynamicRef(name, node), _) => {
                self.spend(self.scopes.len() as u64)?;
                let anchors = &self.schema.dynamic_anchors;
                let outermost = self.scopes.iter().find_map(|scope| anchors.get(&(*scope, *name)));
                self.apply(*outermost.unwrap_or(node), place, marks)
            }
            (Rule::AllOf(nodes), _) => self.all_of(nodes, place, marks),
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, place, marks),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, place, marks),
            (Rule::Not(node), _) => self.not(*node, place),
            (Rule::If(rule), _) => self.conditional(rule, place, marks),
            (Rule::Items(rule), Value::Array(items)) => self.items(rule, items, place, marks),
            (Rule::Contains(rule), Value::Array(items)) => self.contains(rule, items, place, marks),
            (Rule::UniqueItems, Value::Array(items)) => self.unique_items(items, place),
            (Rule::Required(names), Value::Object(map)) => self.required(names, map, place),
            (Rule::Properties(rule), Value::Object(map)) => {
                self.properties(rule, map, place, marks)
            }
            (Rule::PropertyNames(node), Value::Object(map)) => {
                self.property_names(*node, map, place)
            }
            (Rule::DependentRequired(list), Value::Object(map)) => {
                self.dependent_required(list, map, place)
            }
            (Rule::DependentSchemas(list), Value::Object(_)) => {
                self.dependent_schemas(list, place, marks)
            }
            _ => self.flat(rule, place),
        }
    }

    /// Applies a subschema while nobody wants to hear what is wrong.
    fn quietly<'v>(
        &mut self,
        id: NodeId,
        place: &Place<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let report = self.report.take();
        let verdict = self.apply(id, place, marks);
        self.report = report;
        verdict
    }

    /// Takes steps out of the budget.
    fn spend(&mut self, steps: u64) -> Result<(), Stop> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                Err(Stop::OutOfSteps)
            }
        }
    }

    /// Does something one level further in.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= self.schema.limits.max_nested_steps {
            return Err(Stop::TooDeep);
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// Notes what is wrong, if anybody wants to know.
    fn find(&mut self, finding: impl FnOnce(&str) -> Finding) {
        self.find_at_cost(STEPS_TO_TELL, finding);
    }

    /// Notes what is wrong in words that take some steps to find.
    fn find_at_cost(&mut self, steps: u64, finding: impl FnOnce(&str) -> Finding) {
        let Some(report) = &mut self.report else { return };
        if report.is_full() {
            report.count();
        } else {
            // Each alternative has a report of its own, so that findings can be many.
            self.steps_left = self.steps_left.saturating_sub(steps);
            report.add(finding(self.root.unwrap_or_default()));
        }
    }
}
