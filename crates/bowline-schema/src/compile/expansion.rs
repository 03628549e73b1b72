//! How far subschemas that apply to the same value expand.
//!
//! Two references to a subschema with two references to a subschema, and so on, double with every
//! level. That, and circular references, can be detected before any value arrives.

use crate::error::SchemaError;
use crate::limits::Limits;
use crate::node::Node;

/// What is known about a subschema.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    /// Being expanded.
    Open,
    Done {
        /// How many subschemas apply to one value in the worst case.
        steps: u64,
        /// How deeply they nest.
        depth: usize,
    },
}

/// Rejects endless or excessive expansion, and marks everything that leads to a secret as secret.
///
/// Dynamic references are left out: where they lead depends on the value, and the budget of each
/// validation covers them.
pub(super) fn check(
    nodes: &mut [Node],
    locations: &[String],
    limits: &Limits,
) -> Result<(), SchemaError> {
    let mut known = vec![Known::Nothing; nodes.len()];
    // An explicit stack, because a chain of references can be arbitrarily long.
    let mut stack = Vec::new();
    for start in 0..nodes.len() {
        stack.push(start);
        while let Some(&node) = stack.last() {
            if known[node] == Known::Nothing {
                known[node] = Known::Open;
                let followers = nodes[node].in_place();
                if let Some(open) = followers.iter().find(|next| known[next.0] == Known::Open) {
                    return Err(SchemaError::Endless { at: locations[open.0].clone() });
                }
                stack.extend(followers.iter().map(|next| next.0));
                continue;
            }
            stack.pop();
            if known[node] == Known::Open {
                known[node] = sum_up(node, nodes, &known);
                refuse_excess(known[node], &locations[node], limits)?;
            }
        }
    }
    Ok(())
}

/// The sums for a node whose successors are all done.
fn sum_up(node: usize, nodes: &mut [Node], known: &[Known]) -> Known {
    let (mut steps, mut depth, mut secret) = (1_u64, 0, nodes[node].secret);
    for next in nodes[node].in_place() {
        if let Known::Done { steps: more, depth: deeper } = known[next.0] {
            steps = steps.saturating_add(more);
            depth = depth.max(deeper);
        }
        secret |= nodes[next.0].secret;
    }
    nodes[node].secret = secret;
    Known::Done { steps, depth: depth + 1 }
}

fn refuse_excess(known: Known, at: &str, limits: &Limits) -> Result<(), SchemaError> {
    let Known::Done { steps, depth } = known else { return Ok(()) };
    if steps > limits.max_steps {
        let message = format!("takes more than {} steps for a single value", limits.max_steps);
        return Err(SchemaError::too_big(at, message));
    }
    if depth > limits.max_nested_steps / 2 {
        let message = format!(
            "leads through more than {} subschemas for a single value",
            limits.max_nested_steps / 2
        );
        return Err(SchemaError::too_big(at, message));
    }
    Ok(())
}
