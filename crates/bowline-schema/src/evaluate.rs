//! A schema applied to a value, within a budget.
//!
//! The same code runs at most twice. The first run stops at the first broken rule and allocates
//! nothing. If the value fails, a second run goes on to the end and describes what is wrong.

mod array;
mod combine;
mod equal;
mod flat;
mod location;
mod marks;
mod object;
mod report;

use serde_json::Value;

use self::location::{Location, is_within};
use self::marks::Marks;
use self::report::{Finding, Report};
use crate::node::{Node, NodeId, ResourceId, Rule};
use crate::schema::Schema;
use crate::violation::{Invalid, Violations};

/// How many steps a message costs.
const STEPS_TO_TELL: u64 = 40;

/// How many steps the search for the closest allowed value costs.
const STEPS_TO_FIND_CLOSEST: u64 = 400;

/// One run of a schema over a value.
pub(crate) struct Evaluation<'s> {
    schema: &'s Schema,
    steps_left: u64,
    depth: usize,
    /// The resources we are in, outermost first; kept only for dynamic references.
    scopes: Vec<ResourceId>,
    /// Where findings go; `None` in the first run.
    report: Option<Report>,
    /// What messages call the root; `None` in the first run.
    root: Option<&'s str>,
    /// Paths whose values messages must not repeat.
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
        self.apply(self.schema.root, &Location::root(value), None).map_err(|stop| match stop {
            Stop::OutOfSteps => Invalid::TooCostly { max_steps: self.schema.limits.max_steps },
            Stop::TooDeep => {
                Invalid::TooDeep { max_nested_steps: self.schema.limits.max_nested_steps }
            }
        })
    }

    /// How many steps were spent.
    pub(crate) fn spent(&self) -> u64 {
        self.schema.limits.max_steps - self.steps_left
    }

    /// Describes what is wrong with a value that fails.
    pub(crate) fn explain(mut self, root: &'s str, value: &Value) -> Violations {
        self.root = Some(root);
        self.report = Some(Report::default());
        let location = Location::root(value);
        // If the budget runs out, the findings so far are reported.
        self.steps_left /= 2;
        let _ = self.apply(self.schema.root, &location, None);
        let mut report = self.report.take().unwrap_or_default();
        if report.is_empty() {
            report.add(Finding::about(&location, root).saying(", which its schema does not allow"));
        }
        let secrets = &self.secrets;
        report.into_violations(|path| secrets.iter().any(|secret| is_within(path, secret)))
    }

    /// Applies a subschema to the value at a location, and marks what it evaluated.
    fn apply<'v>(
        &mut self,
        id: NodeId,
        location: &Location<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        self.spend(1)?;
        let schema = self.schema;
        let node = &schema.nodes[id.0];
        if let (Some(root), true) = (self.root, node.secret) {
            self.secrets.push(location.path(root));
        }
        if !node.types.contains(location.value) {
            self.find(|root| Finding::about(location, root).of_type().allowing(node.types.words()));
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
        let verdict = self.deeper(|own| own.apply_rules(node, location, marks));
        if enters {
            self.scopes.pop();
        }
        verdict
    }

    fn apply_rules<'v>(
        &mut self,
        node: &'s Node,
        location: &Location<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        // A subschema sees its own marks and those of its parts, never those of its neighbours.
        let mut own = (marks.is_some() || node.unevaluated.is_some()).then(Marks::default);
        let mut passes = true;
        for rule in &node.rules {
            if !self.apply_rule(rule, location, own.as_mut())? {
                passes = false;
                if self.report.is_none() {
                    return Ok(false);
                }
            }
        }
        // After a failure too little is marked, so this would report more than is wrong.
        if let (Some(unevaluated), Some(own), true) = (&node.unevaluated, own.as_mut(), passes) {
            if let Some(rest) = unevaluated.items {
                passes = self.unevaluated_items(rest, location, own)?;
            }
            if let Some(rest) = unevaluated.properties {
                passes &= self.unevaluated_properties(rest, location, own)?;
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
        location: &Location<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        match (rule, location.value) {
            (Rule::Ref(node), _) => self.apply(*node, location, marks),
            (Rule::DynamicRef(name, node), _) => {
                self.spend(self.scopes.len() as u64)?;
                let anchors = &self.schema.dynamic_anchors;
                let outermost = self.scopes.iter().find_map(|scope| anchors.get(&(*scope, *name)));
                self.apply(*outermost.unwrap_or(node), location, marks)
            }
            (Rule::AllOf(nodes), _) => self.all_of(nodes, location, marks),
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, location, marks),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, location, marks),
            (Rule::Not(node), _) => self.not(*node, location),
            (Rule::If(rule), _) => self.conditional(rule, location, marks),
            (Rule::Items(rule), Value::Array(items)) => self.items(rule, items, location, marks),
            (Rule::Contains(rule), Value::Array(items)) => {
                self.contains(rule, items, location, marks)
            }
            (Rule::UniqueItems, Value::Array(items)) => self.unique_items(items, location),
            (Rule::Required(names), Value::Object(map)) => self.required(names, map, location),
            (Rule::Properties(rule), Value::Object(map)) => {
                self.properties(rule, map, location, marks)
            }
            (Rule::PropertyNames(node), Value::Object(map)) => {
                self.property_names(*node, map, location)
            }
            (Rule::DependentRequired(list), Value::Object(map)) => {
                self.dependent_required(list, map, location)
            }
            (Rule::DependentSchemas(list), Value::Object(_)) => {
                self.dependent_schemas(list, location, marks)
            }
            _ => self.flat(rule, location),
        }
    }

    /// Applies a subschema without reporting.
    fn quietly<'v>(
        &mut self,
        id: NodeId,
        location: &Location<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let report = self.report.take();
        let verdict = self.apply(id, location, marks);
        self.report = report;
        verdict
    }

    /// Takes steps from the budget.
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

    /// Runs something one level deeper.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= self.schema.limits.max_nested_steps {
            return Err(Stop::TooDeep);
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// Records a finding, if this run reports.
    fn find(&mut self, finding: impl FnOnce(&str) -> Finding) {
        self.find_at_cost(STEPS_TO_TELL, finding);
    }

    /// Records a finding whose message costs this many steps.
    fn find_at_cost(&mut self, steps: u64, finding: impl FnOnce(&str) -> Finding) {
        let Some(report) = &mut self.report else { return };
        if report.is_full() {
            report.count();
        } else {
            // Each alternative has its own report, so there can be many findings.
            self.steps_left = self.steps_left.saturating_sub(steps);
            report.add(finding(self.root.unwrap_or_default()));
        }
    }
}
