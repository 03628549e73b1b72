//! What the calculator can do with numbers: operators, functions, constants.

use std::f64::consts;
use std::fmt;
use std::ops::RangeInclusive;

use super::expression::{Angles, EvaluationError};

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
}

impl Operator {
    /// How strongly it binds.
    pub(super) fn strength(self) -> u8 {
        match self {
            Self::Plus | Self::Minus => 1,
            Self::Times | Self::Over | Self::Modulo => 2,
            Self::Power => 3,
        }
    }

    /// How strongly what is right of it must bind: 2 - 3 - 4 is (2 - 3) - 4, and 2 ^ 3 ^ 4 is
    /// 2 ^ (3 ^ 4).
    pub(super) fn strength_of_right(self) -> u8 {
        if self == Self::Power { self.strength() } else { self.strength() + 1 }
    }

    pub(super) fn apply(
        self,
        left: f64,
        right: f64,
        shown: &dyn Fn() -> String,
    ) -> Result<f64, EvaluationError> {
        match self {
            Self::Plus => Ok(left + right),
            Self::Minus => Ok(left - right),
            Self::Times => Ok(left * right),
            Self::Over | Self::Modulo if right == 0.0 => {
                Err(EvaluationError::DivisionByZero(shown()))
            }
            Self::Over => Ok(left / right),
            Self::Modulo => Ok(left % right),
            Self::Power => power(left, right).map_err(|reason| undefined(shown(), reason)),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
            Self::Modulo => "%",
            Self::Power => "^",
        })
    }
}

/// A function, and what it takes.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    /// How many arguments.
    pub(super) takes: RangeInclusive<usize>,
    /// Whether it takes or gives an angle.
    pub(super) has_angles: bool,
    meaning: &'static str,
    work: Work,
}

/// The value, or why there is none.
type Value = Result<f64, &'static str>;

#[derive(Debug)]
enum Work {
    One(fn(f64) -> Value),
    Two(fn(f64, f64) -> Value),
    Many(fn(&[f64]) -> Value),
    /// Takes an angle.
    FromAngle(fn(f64, Angles) -> Value),
    /// Gives an angle, in radians.
    ToAngle(fn(&[f64]) -> Value),
}

impl Function {
    pub(super) fn apply(&self, values: &[f64], angles: Angles) -> Result<f64, EvaluationError> {
        let value = match (&self.work, values) {
            (Work::One(work), [one]) => work(*one),
            (Work::Two(work), [one, two]) => work(*one, *two),
            (Work::Many(work), values) => work(values),
            (Work::FromAngle(work), [angle]) => work(*angle, angles),
            (Work::ToAngle(work), values) => work(values).map(|radians| match angles {
                Angles::Degrees => radians.to_degrees(),
                Angles::Radians => radians,
            }),
            // The parser counts arguments.
            _ => Err("it was given another number of arguments"),
        };
        value.map_err(|reason| undefined(self.shown(values), reason))
    }

    /// A call of it, as one writes it.
    pub(super) fn shown(&self, values: &[f64]) -> String {
        let values: Vec<_> = values.iter().map(f64::to_string).collect();
        format!("{}({})", self.name, values.join(", "))
    }

    /// How many arguments it takes, for people.
    pub(super) fn wants(&self) -> String {
        let (least, most) = (*self.takes.start(), *self.takes.end());
        let count = match (least, most) {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, usize::MAX) => format!("at least {least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        };
        format!("{} takes {count}", self.name)
    }
}

fn undefined(call: String, reason: &'static str) -> EvaluationError {
    EvaluationError::Undefined { call, reason }
}

const CONSTANTS: [(&str, f64, &str); 4] = [
    ("e", consts::E, "the base of natural logarithms"),
    ("phi", 1.618_033_988_749_895, "the golden ratio"),
    ("pi", consts::PI, "half a turn in radians"),
    ("tau", consts::TAU, "a turn in radians"),
];

const fn one(name: &'static str, meaning: &'static str, work: fn(f64) -> Value) -> Function {
    Function { name, takes: 1..=1, has_angles: false, meaning, work: Work::One(work) }
}

const fn two(name: &'static str, meaning: &'static str, work: fn(f64, f64) -> Value) -> Function {
    Function { name, takes: 2..=2, has_angles: false, meaning, work: Work::Two(work) }
}

const fn many(name: &'static str, meaning: &'static str, work: fn(&[f64]) -> Value) -> Function {
    Function { name, takes: 1..=usize::MAX, has_angles: false, meaning, work: Work::Many(work) }
}

const fn angle(
    name: &'static str,
    meaning: &'static str,
    takes: RangeInclusive<usize>,
    work: Work,
) -> Function {
    Function { name, takes, has_angles: true, meaning, work }
}

/// By name, so that lists of them are easy to read.
static FUNCTIONS: [Function; 34] = [
    one("abs", "size without sign", |x| Ok(x.abs())),
    angle("acos", "angle of a cosine", 1..=1, Work::ToAngle(|x| from_unit(x, f64::acos))),
    angle("asin", "angle of a sine", 1..=1, Work::ToAngle(|x| from_unit(x, f64::asin))),
    angle("atan", "angle of a tangent", 1..=1, Work::ToAngle(|x| Ok(x[0].atan()))),
    angle("atan2", "angle of y and x", 2..=2, Work::ToAngle(|x| Ok(x[0].atan2(x[1])))),
    one("cbrt", "cube root", |x| Ok(x.cbrt())),
    one("ceil", "next whole number upwards", |x| Ok(x.ceil())),
    angle("cos", "cosine", 1..=1, Work::FromAngle(|x, angles| Ok(cosine(x, angles)))),
    one("cosh", "hyperbolic cosine", |x| Ok(x.cosh())),
    one("exp", "e to the power of x", |x| Ok(x.exp())),
    one("factorial", "product of all whole numbers up to x; also x!", factorial_value),
    one("floor", "next whole number downwards", |x| Ok(x.floor())),
    many("gcd", "greatest common divisor", |x| whole(x).map(|it| it.into_iter().fold(0.0, gcd))),
    two("hypot", "length of the hypotenuse", |x, y| Ok(x.hypot(y))),
    many("lcm", "least common multiple", |x| whole(x).map(|it| it.into_iter().fold(1.0, lcm))),
    one("ln", "natural logarithm", |x| positive(x).map(f64::ln)),
    Function {
        name: "log",
        takes: 1..=2,
        has_angles: false,
        meaning: "logarithm to base 10, or to the base that comes second",
        work: Work::Many(logarithm),
    },
    one("log10", "logarithm to base 10", |x| positive(x).map(f64::log10)),
    one("log2", "logarithm to base 2", |x| positive(x).map(f64::log2)),
    many("max", "the greatest", |x| Ok(x.iter().copied().fold(f64::NEG_INFINITY, f64::max))),
    many("mean", "the average", |x| Ok(x.iter().sum::<f64>() / count(x))),
    many("min", "the least", |x| Ok(x.iter().copied().fold(f64::INFINITY, f64::min))),
    two("mod", "what is left after dividing; also x % y", modulo),
    two("pow", "x to the power of y; also x ^ y", power),
    two("root", "the y-th root of x", root),
    one("round", "nearest whole number, halves away from zero", |x| Ok(x.round())),
    one("sign", "-1, 0 or 1", |x| Ok(if x == 0.0 { 0.0 } else { x.signum() })),
    angle("sin", "sine", 1..=1, Work::FromAngle(|x, angles| Ok(sine(x, angles)))),
    one("sinh", "hyperbolic sine", |x| Ok(x.sinh())),
    one("sqrt", "square root", square_root),
    many("sum", "all together", |x| Ok(x.iter().sum())),
    angle("tan", "tangent", 1..=1, Work::FromAngle(tangent)),
    one("tanh", "hyperbolic tangent", |x| Ok(x.tanh())),
    one("trunc", "the whole part", |x| Ok(x.trunc())),
];

pub(super) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

pub(super) fn constant(name: &str) -> Option<f64> {
    let name = if name == "π" { "pi" } else { name };
    CONSTANTS.iter().find(|(constant, _, _)| *constant == name).map(|(_, value, _)| *value)
}

/// All functions and constants.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let constants = CONSTANTS.iter().map(|(name, _, _)| *name);
    FUNCTIONS.iter().map(|function| function.name).chain(constants)
}

/// Everything that an expression may consist of, for people and models.
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
        return Err("negative numbers have no real powers with fractions");
    }
    Ok(x.powf(y))
}

fn modulo(x: f64, y: f64) -> Value {
    if y == 0.0 { Err("division by zero") } else { Ok(x % y) }
}

fn positive(x: f64) -> Value {
    if x > 0.0 { Ok(x) } else { Err("logarithms take numbers above zero") }
}

fn logarithm(x: &[f64]) -> Value {
    let [number, base @ ..] = x else { return Err("it takes a number") };
    let number = positive(*number)?;
    match base {
        [] => Ok(number.log10()),
        [base, ..] if *base == 1.0 => Err("there is no logarithm to base 1"),
        [base, ..] => Ok(number.ln() / positive(*base)?.ln()),
    }
}

fn from_unit(x: &[f64], work: fn(f64) -> f64) -> Value {
    let x = x[0];
    if (-1.0..=1.0).contains(&x) { Ok(work(x)) } else { Err("it takes numbers from -1 to 1") }
}

/// Exact where people know the answer by heart: conversion to radians would spoil it.
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
        90.0 => Err("the tangent is not defined there"),
        0.0 => Ok(0.0),
        45.0 => Ok(1.0),
        135.0 => Ok(-1.0),
        turned => Ok(turned.to_radians().tan()),
    }
}

/// Doubles are exact for whole numbers up to here.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

fn whole(x: &[f64]) -> Result<Vec<f64>, &'static str> {
    let is_whole = |x: &f64| x.fract() == 0.0 && x.abs() <= MAX_WHOLE;
    if x.iter().all(is_whole) {
        return Ok(x.iter().map(|x| x.abs()).collect());
    }
    Err("it takes whole numbers up to 2 ^ 53")
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

fn factorial_value(x: f64) -> Value {
    if x < 0.0 || x.fract() != 0.0 {
        return Err("factorials take whole numbers from zero on");
    }
    let mut product = 1.0;
    let mut factor = 2.0;
    // It ends soon: at 171 the product is infinite.
    while factor <= x && f64::is_finite(product) {
        product *= factor;
        factor += 1.0;
    }
    Ok(product)
}

/// `x!`.
pub(super) fn factorial(x: f64) -> Result<f64, EvaluationError> {
    factorial_value(x).map_err(|reason| undefined(format!("{x}!"), reason))
}
