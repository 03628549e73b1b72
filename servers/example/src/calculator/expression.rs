//! Expressions: parsed once, evaluated as often as needed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::functions::Function;
use super::parser::Parser;

/// The unit of angles.
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

/// An expression that can be evaluated, as a program for a stack machine.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Leaves exactly one value on the stack.
    program: Vec<Instruction>,
    variables: Vec<String>,
}

/// One step of an expression's program.
#[derive(Debug, Clone)]
pub(super) enum Instruction {
    Push(f64),
    /// Pushes the variable with this index.
    Load(usize),
    /// Replaces this many values with the function's value.
    Apply(&'static Function, usize),
}

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("syntax error at character {at}: {reason}")]
pub struct ParseError {
    /// Where, in characters, starting at 1.
    pub at: usize,
    /// What is wrong there.
    pub reason: String,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A function or operator is not defined for its operands.
    #[error("{call} is undefined: {reason}")]
    Undefined {
        /// The function and its operands.
        call: String,
        /// Why there is no value.
        reason: &'static str,
    },
    /// The value does not fit into a double.
    #[error("the result of {0} is too large: the limit is about 1.8e308")]
    Overflow(String),
    /// A variable has no value.
    #[error("the variable {0} has no value")]
    Unknown(String),
}

impl Expression {
    /// Parses an expression without variables.
    ///
    /// # Errors
    /// When it is not an expression.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_with(text, &[])
    }

    /// Parses an expression that may use these variables.
    ///
    /// # Errors
    /// When it is not an expression.
    pub fn parse_with(text: &str, variables: &[String]) -> Result<Self, ParseError> {
        let program = Parser::parse(text, variables)?;
        Ok(Self { program, variables: variables.to_vec() })
    }

    /// Evaluates the expression, with values for its variables in their order.
    ///
    /// # Errors
    /// When it has no value.
    ///
    /// # Panics
    /// Never: the parser writes only programs that leave one value.
    pub fn evaluate(&self, angles: Angles, values: &[f64]) -> Result<f64, EvaluationError> {
        let mut stack = Vec::new();
        for instruction in &self.program {
            let value = match instruction {
                Instruction::Push(number) => *number,
                Instruction::Load(index) => *values
                    .get(*index)
                    .ok_or_else(|| EvaluationError::Unknown(self.variables[*index].clone()))?,
                Instruction::Apply(function, count) => {
                    let first = stack.len() - count;
                    let value = function.apply(&stack[first..], angles)?;
                    stack.truncate(first);
                    value
                }
            };
            stack.push(value);
        }
        Ok(stack.pop().expect("a program leaves one value"))
    }

    /// Whether its value depends on the unit of angles.
    pub fn has_angles(&self) -> bool {
        let mut program = self.program.iter();
        program.any(|it| matches!(it, Instruction::Apply(function, _) if function.has_angles))
    }
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
    fn precedence() {
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
    fn undefined_values_are_explained() {
        check_error("1 / 0", "1 / 0 is undefined: division by zero");
        check_error("5 % (2 - 2)", "5 % 0 is undefined: division by zero");
        let real = "square roots of negative numbers are not real";
        check_error("sqrt(-1)", &format!("sqrt(-1) is undefined: {real}"));
        check_error("ln(0)", "ln(0) is undefined: logarithms need a number above zero");
        check_error("asin(2)", "asin(2) is undefined: expected a number from -1 to 1");
        check_error("tan(90)", "tan(90) is undefined: there is no tangent at a right angle");
        let whole = "factorials need a whole number, zero or above";
        check_error("(-3)!", &format!("-3! is undefined: {whole}"));
        check_error("2.5!", &format!("2.5! is undefined: {whole}"));
        let far = "too large: the limit is about 1.8e308";
        check_error("171!", &format!("the result of 171! is {far}"));
        check_error("10 ^ 400", &format!("the result of 10 ^ 400 is {far}"));
        check_error("exp(1000)", &format!("the result of exp(1000) is {far}"));
        let reason = "a negative number has no real fractional powers";
        check_error("(-8) ^ 0.5", &format!("-8 ^ 0.5 is undefined: {reason}"));
    }

    #[test]
    fn syntax_errors_have_positions() {
        let at = |at, reason: &str| format!("syntax error at character {at}: {reason}");
        check_error("", &at(1, "the expression is empty"));
        check_error("2 +", &at(4, "expected a number, a name or (, found the end"));
        check_error("2 3", &at(3, "expected an operator before \"3\""));
        check_error("(2", &at(3, "expected )"));
        check_error("2)", &at(2, "unmatched )"));
        check_error("2 $ 3", &at(3, "unexpected character '$'"));
        check_error("* 2", &at(1, "expected a number, a name or (, found \"*\""));
        check_error("1.2.3", &at(1, "\"1.2.3\" is not a number"));
        check_error("sqrt", &at(1, "sqrt is a function: write sqrt(x)"));
        check_error("sqrt()", &at(1, "sqrt takes 1 argument, not 0"));
        check_error("hypot(1)", &at(1, "hypot takes 2 arguments, not 1"));
        check_error("pi(2)", &at(1, "pi is not a function"));
        let unknown = value("sqr(4)").unwrap_err();
        assert!(unknown.starts_with(&at(1, "sqr is not defined; available: abs, ")), "{unknown}");
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000));
        assert!(value(&deep).unwrap_err().contains("nested more than"));
        assert!(value(&"-".repeat(4_000)).unwrap_err().contains("nested more than"));
        assert!(value(&"2^".repeat(1_000)).unwrap_err().contains("nested more than"));
        let factorials = format!("1{}", "!".repeat(1_000));
        assert_eq!(value(&factorials), Ok(1.0));
        let flat = format!("1{}", "+1!".repeat(1_000));
        assert_eq!(value(&flat), Ok(1_001.0));
        assert!(value(&"1+".repeat(3_000)).unwrap_err().contains("longer than"));
        let long = format!("1{}", "+1".repeat(2_000));
        assert_eq!(value(&long), Ok(2_001.0));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[-+*/^%()0-9a-z.,! ]{0,60}|\\PC{0,60}") {
            let _ = value(&text);
        }
    }
}
