//! What the calculator can do with numbers: operators, functions, constants.

use std::f64::consts;
use std::ops::RangeInclusive;

use super::expression::{Angles, EvaluationError};

/// A function, or what an operator does.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    notation: Notation,
    /// How many arguments.
    pub(super) takes: RangeInclusive<usize>,
    /// Whether it takes or returns an angle.
    pub(super) has_angles: bool,
    meaning: &'static str,
    rule: Rule,
}

/// How a function is written.
#[derive(Debug)]
enum Notation {
    Call,
    Prefix,
    Infix,
    Postfix,
}

/// The value, or why there is none.
type Value = Result<f64, &'static str>;

#[derive(Debug)]
enum Rule {
    One(fn(f64) -> Value),
    Two(fn(f64, f64) -> Value),
    Many(fn(&[f64]) -> Value),
    /// Takes an angle.
    FromAngle(fn(f64, Angles) -> Value),
    /// Returns an angle in radians.
    ToAngle(fn(&[f64]) -> Value),
}

impl Function {
    pub(super) fn apply(&self, values: &[f64], angles: Angles) -> Result<f64, EvaluationError> {
        let value = match (&self.rule, values) {
            (Rule::One(rule), [one]) => rule(*one),
            (Rule::Two(rule), [one, two]) => rule(*one, *two),
            (Rule::Many(rule), values) => rule(values),
            (Rule::FromAngle(rule), [angle]) => rule(*angle, angles),
            (Rule::ToAngle(rule), values) => rule(values).map(|radians| match angles {
                Angles::Degrees => radians.to_degrees(),
                Angles::Radians => radians,
            }),
            // The parser counts arguments.
            _ => Err("wrong number of arguments"),
        };
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(EvaluationError::Overflow(self.written(values))),
            Err(reason) => Err(EvaluationError::Undefined { call: self.written(values), reason }),
        }
    }

    /// The function with these arguments, as people write it.
    fn written(&self, values: &[f64]) -> String {
        let values: Vec<_> = values.iter().map(f64::to_string).collect();
        let name = self.name;
        match self.notation {
            Notation::Call => format!("{name}({})", values.join(", ")),
            Notation::Prefix => format!("{name}{}", values.concat()),
            Notation::Infix => values.join(&format!(" {name} ")),
            Notation::Postfix => format!("{}{name}", values.concat()),
        }
    }

    /// How many arguments it takes, for people.
    pub(super) fn wants(&self) -> String {
        let count = match (*self.takes.start(), *self.takes.end()) {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, usize::MAX) => format!("at least {least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        };
        format!("{} takes {count}", self.name)
    }
}

/// An operator between two operands.
#[derive(Debug)]
pub(super) struct Operator {
    /// How strongly it binds.
    pub(super) strength: u8,
    pub(super) function: Function,
}

impl Operator {
    /// How strongly its right operand must bind: 2 - 3 - 4 is (2 - 3) - 4, and 2 ^ 3 ^ 4 is
    /// 2 ^ (3 ^ 4).
    pub(super) fn strength_of_right(&self) -> u8 {
        if self.function.name == "^" { self.strength } else { self.strength + 1 }
    }
}

const fn operator(name: &'static str, strength: u8, rule: fn(f64, f64) -> Value) -> Operator {
    let function = Function { notation: Notation::Infix, ..two(name, "", rule) };
    Operator { strength, function }
}

static OPERATORS: [Operator; 6] = [
    operator("+", 1, |x, y| Ok(x + y)),
    operator("-", 1, |x, y| Ok(x - y)),
    operator("*", 2, |x, y| Ok(x * y)),
    operator("/", 2, |x, y| divisor(y).map(|y| x / y)),
    operator("%", 2, modulo),
    operator("^", 3, power),
];

/// `-x`.
pub(super) static NEGATION: Function =
    Function { notation: Notation::Prefix, ..one("-", "", |x| Ok(-x)) };

/// `x!`.
pub(super) static FACTORIAL: Function =
    Function { notation: Notation::Postfix, ..one("!", "", factorial) };

const CONSTANTS: [(&str, f64, &str); 4] = [
    ("e", consts::E, "the base of natural logarithms"),
    ("phi", 1.618_033_988_749_895, "the golden ratio"),
    ("pi", consts::PI, "half a turn in radians"),
    ("tau", consts::TAU, "a turn in radians"),
];

const fn one(name: &'static str, meaning: &'static str, rule: fn(f64) -> Value) -> Function {
    Function {
        name,
        notation: Notation::Call,
        takes: 1..=1,
        has_angles: false,
        meaning,
        rule: Rule::One(rule),
    }
}

const fn two(name: &'static str, meaning: &'static str, rule: fn(f64, f64) -> Value) -> Function {
    Function {
        name,
        notation: Notation::Call,
        takes: 2..=2,
        has_angles: false,
        meaning,
        rule: Rule::Two(rule),
    }
}

const fn many(name: &'static str, meaning: &'static str, rule: fn(&[f64]) -> Value) -> Function {
    Function {
        name,
        notation: Notation::Call,
        takes: 1..=usize::MAX,
        has_angles: false,
        meaning,
        rule: Rule::Many(rule),
    }
}

const fn angle(
    name: &'static str,
    meaning: &'static str,
    takes: RangeInclusive<usize>,
    rule: Rule,
) -> Function {
    Function { name, notation: Notation::Call, takes, has_angles: true, meaning, rule }
}

/// Sorted by name, as people read them.
static FUNCTIONS: [Function; 34] = [
    one("abs", "absolute value", |x| Ok(x.abs())),
    angle("acos", "arc cosine", 1..=1, Rule::ToAngle(|x| from_unit(x, f64::acos))),
    angle("asin", "arc sine", 1..=1, Rule::ToAngle(|x| from_unit(x, f64::asin))),
    angle("atan", "arc tangent", 1..=1, Rule::ToAngle(|x| Ok(x[0].atan()))),
    angle(
        "atan2",
        "angle of the point (x, y), given as y, x",
        2..=2,
        Rule::ToAngle(|x| Ok(x[0].atan2(x[1]))),
    ),
    one("cbrt", "cube root", |x| Ok(x.cbrt())),
    one("ceil", "smallest whole number not below x", |x| Ok(x.ceil())),
    angle("cos", "cosine", 1..=1, Rule::FromAngle(|x, angles| Ok(cosine(x, angles)))),
    one("cosh", "hyperbolic cosine", |x| Ok(x.cosh())),
    one("exp", "e to the power of x", |x| Ok(x.exp())),
    one("factorial", "product of the whole numbers from 1 to x; also x!", factorial),
    one("floor", "largest whole number not above x", |x| Ok(x.floor())),
    many("gcd", "greatest common divisor", |x| whole(x).map(|it| it.into_iter().fold(0.0, gcd))),
    two("hypot", "length of the hypotenuse", |x, y| Ok(x.hypot(y))),
    many("lcm", "least common multiple", |x| whole(x).map(|it| it.into_iter().fold(1.0, lcm))),
    one("ln", "natural logarithm", |x| positive(x).map(f64::ln)),
    Function {
        name: "log",
        notation: Notation::Call,
        takes: 1..=2,
        has_angles: false,
        meaning: "logarithm to base 10, or to the base given second",
        rule: Rule::Many(logarithm),
    },
    one("log10", "logarithm to base 10", |x| positive(x).map(f64::log10)),
    one("log2", "logarithm to base 2", |x| positive(x).map(f64::log2)),
    many("max", "largest argument", |x| Ok(x.iter().copied().fold(f64::NEG_INFINITY, f64::max))),
    many("mean", "average of the arguments", |x| Ok(x.iter().sum::<f64>() / count(x))),
    many("min", "smallest argument", |x| Ok(x.iter().copied().fold(f64::INFINITY, f64::min))),
    two("mod", "remainder of a division; also x % y", modulo),
    two("pow", "x to the power of y; also x ^ y", power),
    two("root", "y-th root of x", root),
    one("round", "nearest whole number, halves away from zero", |x| Ok(x.round())),
    one("sign", "-1, 0 or 1", |x| Ok(if x == 0.0 { 0.0 } else { x.signum() })),
    angle("sin", "sine", 1..=1, Rule::FromAngle(|x, angles| Ok(sine(x, angles)))),
    one("sinh", "hyperbolic sine", |x| Ok(x.sinh())),
    one("sqrt", "square root", square_root),
    many("sum", "sum of the arguments", |x| Ok(x.iter().sum())),
    angle("tan", "tangent", 1..=1, Rule::FromAngle(tangent)),
    one("tanh", "hyperbolic tangent", |x| Ok(x.tanh())),
    one("trunc", "whole part of x", |x| Ok(x.trunc())),
];

/// The operator with this symbol.
pub(super) fn operator_named(symbol: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|operator| operator.function.name == symbol)
}

pub(super) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

pub(super) fn constant(name: &str) -> Option<f64> {
    let name = if name == "π" { "pi" } else { name };
    CONSTANTS.iter().find(|(constant, _, _)| *constant == name).map(|(_, value, _)| *value)
}

/// The names of all functions and constants.
pub(super) fn names() -> impl Iterator<Item = String> {
    let constants = CONSTANTS.iter().map(|(name, _, _)| *name);
    FUNCTIONS.iter().map(|function| function.name).chain(constants).map(str::to_owned)
}

/// Everything that an expression may contain, for people and models.
pub(super) fn description() -> String {
    let mut text = String::from(
        "Numbers: 2, 2.5, 1.5e3. Operators, the strongest first: x! (factorial), x ^ y, -x, \
         x * y, x / y, x % y, x + y, x - y; and parentheses.\n\
         Angles are in degrees unless `angles` is \"radians\".\n\nFunctions:\n",
    );
    for function in &FUNCTIONS {
        let Function { name, meaning, has_angles, .. } = function;
        let angles = if *has_angles { " (angles)" } else { "" };
        text += &format!("  {name}: {meaning}{angles}\n");
    }
    text += "\nConstants:\n";
    for (name, value, meaning) in CONSTANTS {
        text += &format!("  {name} = {value}: {meaning}\n");
    }
    text
}

fn square_root(x: f64) -> Value {
    if x < 0.0 { Err("square roots of negative numbers are not real") } else { Ok(x.sqrt()) }
}

fn root(x: f64, y: f64) -> Value {
    if y == 0.0 {
        return Err("there is no zeroth root");
    }
    // Odd roots of negative numbers are real.
    if x < 0.0 && y.rem_euclid(2.0) == 1.0 {
        return Ok(-(-x).powf(1.0 / y));
    }
    if x < 0.0 { Err("even roots of negative numbers are not real") } else { Ok(x.powf(1.0 / y)) }
}

fn power(x: f64, y: f64) -> Value {
    if x == 0.0 && y < 0.0 {
        return Err("zero has no negative powers");
    }
    if x < 0.0 && y.fract() != 0.0 {
        return Err("a negative number has no real fractional powers");
    }
    Ok(x.powf(y))
}

fn divisor(y: f64) -> Value {
    if y == 0.0 { Err("division by zero") } else { Ok(y) }
}

fn modulo(x: f64, y: f64) -> Value {
    divisor(y).map(|y| x % y)
}

fn positive(x: f64) -> Value {
    if x > 0.0 { Ok(x) } else { Err("logarithms need a number above zero") }
}

fn logarithm(x: &[f64]) -> Value {
    let [number, base @ ..] = x else { return Err("expected a number") };
    let number = positive(*number)?;
    match base {
        [] => Ok(number.log10()),
        [base, ..] if *base == 1.0 => Err("there is no logarithm to base 1"),
        [base, ..] => Ok(number.ln() / positive(*base)?.ln()),
    }
}

fn from_unit(x: &[f64], rule: fn(f64) -> f64) -> Value {
    let x = x[0];
    if (-1.0..=1.0).contains(&x) { Ok(rule(x)) } else { Err("expected a number from -1 to 1") }
}

/// Exact at the angles that people know by heart: conversion to radians would spoil them.
fn sine(angle: f64, angles: Angles) -> f64 {
    if angles == Angles::Radians {
        return angle.sin();
    }
    match angle.rem_euclid(360.0) {
        0.0 | 180.0 => 0.0,
        30.0 | 150.0 => 0.5,
        90.0 => 1.0,
        210.0 | 330.0 => -0.5,
        270.0 => -1.0,
        turned => turned.to_radians().sin(),
    }
}

fn cosine(angle: f64, angles: Angles) -> f64 {
    match angles {
        Angles::Degrees => sine(angle + 90.0, angles),
        Angles::Radians => angle.cos(),
    }
}

fn tangent(angle: f64, angles: Angles) -> Value {
    if angles == Angles::Radians {
        return Ok(angle.tan());
    }
    match angle.rem_euclid(180.0) {
        90.0 => Err("there is no tangent at a right angle"),
        0.0 => Ok(0.0),
        45.0 => Ok(1.0),
        135.0 => Ok(-1.0),
        turned => Ok(turned.to_radians().tan()),
    }
}

/// Up to here, doubles represent whole numbers exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

fn whole(x: &[f64]) -> Result<Vec<f64>, &'static str> {
    let is_whole = |x: &f64| x.fract() == 0.0 && x.abs() <= MAX_WHOLE;
    if x.iter().all(is_whole) {
        return Ok(x.iter().map(|x| x.abs()).collect());
    }
    Err("expected whole numbers up to 2 ^ 53")
}

fn gcd(x: f64, y: f64) -> f64 {
    let (mut x, mut y) = (x, y);
    while y != 0.0 {
        (x, y) = (y, x % y);
    }
    x
}

fn lcm(x: f64, y: f64) -> f64 {
    if x == 0.0 || y == 0.0 { 0.0 } else { x / gcd(x, y) * y }
}

#[expect(clippy::cast_precision_loss, reason = "an expression is short")]
fn count(x: &[f64]) -> f64 {
    x.len() as f64
}

fn factorial(x: f64) -> Value {
    if x < 0.0 || x.fract() != 0.0 {
        return Err("factorials need a whole number, zero or above");
    }
    let mut product = 1.0;
    let mut factor = 2.0;
    // This ends soon: at 171 the product is infinite.
    while factor <= x && f64::is_finite(product) {
        product *= factor;
        factor += 1.0;
    }
    Ok(product)
}
