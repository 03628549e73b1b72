//! Expressions: read once, evaluated as often as needed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::functions::{self, Function, Operator};
use super::parser::Parser;

/// The longest expression, in bytes.
pub(super) const MAX_LENGTH: usize = 4_096;

/// What angles are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Angles {
    /// A full turn is 360.
    #[default]
    Degrees,
    /// A full turn is 2 pi.
    Radians,
}

impl fmt::Display for Angles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Degrees => "degrees",
            Self::Radians => "radians",
        })
    }
}

/// An expression that can be evaluated.
#[derive(Debug, Clone)]
pub struct Expression {
    root: Node,
    variables: Vec<String>,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the expression is wrong at character {at}: {reason}")]
pub struct ParseError {
    /// Where, in characters, the first being 1.
    pub at: usize,
    /// What is wrong there.
    pub reason: String,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The divisor is zero.
    #[error("division by zero: {0} has no value")]
    DivisionByZero(String),
    /// A function is not defined there.
    #[error("{call} has no value: {reason}")]
    Undefined {
        /// The function and what it was given.
        call: String,
        /// What it takes instead.
        reason: &'static str,
    },
    /// The value is beyond what a double holds.
    #[error("the result of {0} is too large: numbers go up to about 1.8e308")]
    Overflow(String),
    /// A variable was given no value.
    #[error("{0} has no value: it is neither a constant nor given")]
    Unknown(String),
}

impl Expression {
    /// Reads an expression without variables.
    ///
    /// # Errors
    /// When it is none; says where and why.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_with(text, &[])
    }

    /// Reads an expression in which these names may stand.
    ///
    /// # Errors
    /// When it is none; says where and why.
    pub fn parse_with(text: &str, variables: &[String]) -> Result<Self, ParseError> {
        let root = Parser::parse(text, variables)?;
        Ok(Self { root, variables: variables.to_vec() })
    }

    /// Its value, with values for its variables, in their order.
    ///
    /// # Errors
    /// When it has none; says why.
    pub fn evaluate(&self, angles: Angles, values: &[f64]) -> Result<f64, EvaluationError> {
        Scope { angles, variables: &self.variables, values }.evaluate(&self.root)
    }

    /// Whether its value depends on what angles are measured in.
    pub fn has_angles(&self) -> bool {
        self.root.any(&|node| matches!(node, Node::Call(function, _) if function.has_angles))
    }
}

/// A part of an expression. Its depth is bounded by the parser.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Number(f64),
    Variable(usize),
    Negated(Box<Self>),
    Factorial(Box<Self>),
    /// Operators and operands, from left to right: a list, so that a long sum is not deep.
    Chain(Box<Self>, Vec<(Operator, Self)>),
    Call(&'static Function, Vec<Self>),
}

impl Node {
    fn any(&self, is_it: &dyn Fn(&Self) -> bool) -> bool {
        is_it(self)
            || match self {
                Self::Number(_) | Self::Variable(_) => false,
                Self::Negated(inner) | Self::Factorial(inner) => inner.any(is_it),
                Self::Chain(first, rest) => {
                    first.any(is_it) || rest.iter().any(|(_, node)| node.any(is_it))
                }
                Self::Call(_, arguments) => arguments.iter().any(|argument| argument.any(is_it)),
            }
    }
}

/// What an expression is evaluated with.
struct Scope<'a> {
    angles: Angles,
    variables: &'a [String],
    values: &'a [f64],
}

impl Scope<'_> {
    fn evaluate(&self, node: &Node) -> Result<f64, EvaluationError> {
        match node {
            Node::Number(number) => Ok(*number),
            Node::Variable(index) => self.values.get(*index).copied().ok_or_else(|| {
                let name = self.variables.get(*index).cloned().unwrap_or_default();
                EvaluationError::Unknown(name)
            }),
            Node::Negated(inner) => Ok(-self.evaluate(inner)?),
            Node::Factorial(inner) => {
                let number = self.evaluate(inner)?;
                finite(functions::factorial(number)?, || format!("{number}!"))
            }
            Node::Chain(first, rest) => {
                let mut left = self.evaluate(first)?;
                for (operator, node) in rest {
                    let right = self.evaluate(node)?;
                    let shown = || format!("{left} {operator} {right}");
                    left = finite(operator.apply(left, right, &shown)?, shown)?;
                }
                Ok(left)
            }
            Node::Call(function, arguments) => {
                let values: Result<Vec<f64>, _> =
                    arguments.iter().map(|argument| self.evaluate(argument)).collect();
                let values = values?;
                let shown = || function.shown(&values);
                finite(function.apply(&values, self.angles)?, shown)
            }
        }
    }
}

/// Only values that are numbers go on.
fn finite(value: f64, shown: impl Fn() -> String) -> Result<f64, EvaluationError> {
    if value.is_finite() { Ok(value) } else { Err(EvaluationError::Overflow(shown())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let expression = Expression::parse(text).map_err(|error| error.to_string())?;
        expression.evaluate(Angles::Degrees, &[]).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(text: &str, expected: f64) {
        let value = value(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let close = (value - expected).abs() <= 1e-12 * expected.abs().max(1.0);
        assert!(close, "{text} is {value}, not {expected}");
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        assert_eq!(value(text).unwrap_err(), expected, "{text}");
    }

    #[test]
    fn what_binds_stronger_is_done_first() {
        check("2 + 3 * 4", 14.0);
        check("(2 + 3) * 4", 20.0);
        check("2 - 3 - 4", -5.0);
        check("100 / 10 / 5", 2.0);
        check("2 ^ 3 ^ 2", 512.0);
        check("-2 ^ 2", -4.0);
        check("2 ^ -1", 0.5);
        check("2 * -3", -6.0);
        check("--3", 3.0);
        check("3! ^ 2", 36.0);
        check("-3!", -6.0);
        check("7 % 4 * 2", 6.0);
        check("-7 % 4", -3.0);
        check("1.5e3 + .5 + 2.", 1_502.5);
        check("2 × 3 ÷ 4 − 1", 0.5);
        check("2 ** 3", 8.0);
    }

    #[test]
    fn functions_and_constants_are_known() {
        check("sqrt(16)", 4.0);
        check("cbrt(-27)", -3.0);
        check("abs(-3) + max(1, 2, 3) - min(4, 5)", 2.0);
        check("log(1000) + ln(e) + log2(8) + log(9, 3)", 9.0);
        check("round(2.5) + floor(2.9) + ceil(2.1) + trunc(-2.9)", 6.0);
        check("PI * 2 - tau", 0.0);
        check("hypot(3, 4) + exp(0) + sign(-2)", 5.0);
        check("gcd(12, 18) + lcm(4, 6)", 18.0);
        check("5!", 120.0);
        check("factorial(0)", 1.0);
        check("pow(2, 10) + mod(7, 4) + root(27, 3)", 1_030.0);
    }

    #[test]
    fn degrees_are_exact_where_people_know_the_answer() {
        for (text, expected) in [
            ("sin(30)", 0.5),
            ("sin(-30)", -0.5),
            ("sin(180)", 0.0),
            ("cos(60)", 0.5),
            ("cos(90)", 0.0),
            ("tan(45)", 1.0),
            ("tan(-45)", -1.0),
            ("sin(750)", 0.5),
            ("atan2(1, 1)", 45.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        check("asin(0.5)", 30.0);
        check("acos(0)", 90.0);
        let radians = |text: &str| Expression::parse(text).unwrap().evaluate(Angles::Radians, &[]);
        assert_eq!(radians("sin(pi / 2)"), Ok(1.0));
        assert!(Expression::parse("1 + sin(2)").unwrap().has_angles());
        assert!(!Expression::parse("1 + sinh(2)").unwrap().has_angles());
    }

    #[test]
    fn what_has_no_value_says_why() {
        check_error("1 / 0", "division by zero: 1 / 0 has no value");
        check_error("5 % (2 - 2)", "division by zero: 5 % 0 has no value");
        let real = "square roots of negative numbers are not real";
        check_error("sqrt(-1)", &format!("sqrt(-1) has no value: {real}"));
        check_error("ln(0)", "ln(0) has no value: logarithms take numbers above zero");
        check_error("asin(2)", "asin(2) has no value: it takes numbers from -1 to 1");
        check_error("tan(90)", "tan(90) has no value: the tangent is not defined there");
        let whole = "factorials take whole numbers from zero on";
        check_error("(-3)!", &format!("-3! has no value: {whole}"));
        check_error("2.5!", &format!("2.5! has no value: {whole}"));
        let far = "too large: numbers go up to about 1.8e308";
        check_error("171!", &format!("the result of 171! is {far}"));
        check_error("10 ^ 400", &format!("the result of 10 ^ 400 is {far}"));
        check_error("exp(1000)", &format!("the result of exp(1000) is {far}"));
        let reason = "negative numbers have no real powers with fractions";
        check_error("(-8) ^ 0.5", &format!("-8 ^ 0.5 has no value: {reason}"));
    }

    #[test]
    fn nonsense_is_pointed_at() {
        let at = |at, reason: &str| format!("the expression is wrong at character {at}: {reason}");
        check_error("", &at(1, "it is empty"));
        check_error("2 +", &at(4, "it ends where a number, a name or ( should stand"));
        check_error("2 3", &at(3, "an operator is missing before \"3\""));
        check_error("(2", &at(3, "a ) is missing"));
        check_error("2)", &at(2, "a ) too many"));
        check_error("2 $ 3", &at(3, "'$' means nothing here"));
        check_error("* 2", &at(1, "\"*\" where a number, a name or ( should stand"));
        check_error("1.2.3", &at(1, "\"1.2.3\" is no number"));
        check_error("sqrt", &at(1, "sqrt is a function: write sqrt(x)"));
        check_error("sqrt()", &at(1, "sqrt takes 1 argument, not 0"));
        check_error("hypot(1)", &at(1, "hypot takes 2 arguments, not 1"));
        check_error("pi(2)", &at(1, "pi is no function"));
        let unknown = value("sqr(4)").unwrap_err();
        assert!(unknown.starts_with(&at(1, "sqr is unknown; known are abs, ")), "{unknown}");
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000));
        assert!(value(&deep).unwrap_err().contains("nested more than"));
        assert!(value(&"-".repeat(4_000)).unwrap_err().contains("nested more than"));
        assert!(value(&"2^".repeat(1_000)).unwrap_err().contains("nested more than"));
        let factorials = format!("1{}", "!".repeat(1_000));
        assert!(value(&factorials).unwrap_err().contains("nested more than"));
        let flat = format!("1{}", "+1!".repeat(1_000));
        assert_eq!(value(&flat), Ok(1_001.0));
        assert!(value(&"1+".repeat(3_000)).unwrap_err().contains("longer than"));
        let long = format!("1{}", "+1".repeat(2_000));
        assert_eq!(value(&long), Ok(2_001.0));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in "[-+*/^%()0-9a-z.,! ]{0,60}|\\PC{0,60}") {
            let _ = value(&text);
        }
    }
}
