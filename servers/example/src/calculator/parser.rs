//! From text to a program: precedence climbing over a list of tokens.

use super::expression::{Instruction, ParseError};
use super::functions::{self, FACTORIAL, Function, NEGATION};

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 4_096;
/// How deeply parentheses, signs and powers may be nested: the parser recurses as deeply.
const MAX_DEPTH: usize = 128;
/// How strongly a sign binds: as in mathematics, -2 ^ 2 is -(2 ^ 2).
const SIGN: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Number(f64),
    Name(&'a str),
    Symbol(&'static str),
}

/// A token, its text, and the position of its first character, starting at 1.
#[derive(Debug, Clone, Copy)]
struct Placed<'a> {
    token: Token<'a>,
    text: &'a str,
    at: usize,
}

/// Parses one expression.
pub(super) struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    next: usize,
    end: usize,
    depth: usize,
    variables: &'a [String],
    program: Vec<Instruction>,
}

impl<'a> Parser<'a> {
    pub(super) fn parse(
        text: &'a str,
        variables: &'a [String],
    ) -> Result<Vec<Instruction>, ParseError> {
        if text.len() > MAX_LENGTH {
            return Err(wrong(1, format!("the expression is longer than {MAX_LENGTH} bytes")));
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(wrong(1, "the expression is empty"));
        }
        let end = text.chars().count() + 1;
        let mut parser = Self { tokens, next: 0, end, depth: 0, variables, program: Vec::new() };
        parser.operation(0)?;
        match parser.peek() {
            None => Ok(parser.program),
            Some(Placed { token: Token::Symbol(")"), at, .. }) => Err(wrong(at, "unmatched )")),
            Some(Placed { token: Token::Symbol(","), at, .. }) => {
                Err(wrong(at, "unexpected , outside of a function's arguments"))
            }
            Some(Placed { text, at, .. }) => {
                Err(wrong(at, format!("expected an operator before {text:?}")))
            }
        }
    }

    fn peek(&self) -> Option<Placed<'a>> {
        self.tokens.get(self.next).copied()
    }

    /// The position of the next token.
    fn at(&self) -> usize {
        self.peek().map_or(self.end, |placed| placed.at)
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let is_next = self.peek().is_some_and(|placed| placed.token == Token::Symbol(symbol));
        self.next += usize::from(is_next);
        is_next
    }

    fn apply(&mut self, function: &'static Function, count: usize) {
        self.program.push(Instruction::Apply(function, count));
    }

    /// Operands joined by operators that bind at least this strongly.
    fn operation(&mut self, strength: u8) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(wrong(self.at(), format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.operand()?;
        while let Some(Placed { token: Token::Symbol(symbol), .. }) = self.peek()
            && let Some(operator) = functions::operator_named(symbol)
            && operator.strength >= strength
        {
            self.next += 1;
            self.operation(operator.strength_of_right())?;
            self.apply(&operator.function, 2);
        }
        self.depth -= 1;
        Ok(())
    }

    /// A number, a name, a call or a parenthesis; with signs before it and `!` after it.
    fn operand(&mut self) -> Result<(), ParseError> {
        if self.take("-") {
            self.operation(SIGN)?;
            self.apply(&NEGATION, 1);
            return Ok(());
        }
        if self.take("+") {
            return self.operation(SIGN);
        }
        self.atom()?;
        while self.take("!") {
            self.apply(&FACTORIAL, 1);
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<(), ParseError> {
        let placed = self.peek();
        self.next += 1;
        match placed.map(|placed| placed.token) {
            Some(Token::Number(number)) => self.program.push(Instruction::Push(number)),
            Some(Token::Name(name)) => return self.named(name),
            Some(Token::Symbol("(")) => {
                self.operation(0)?;
                return self.close();
            }
            _ => {
                let (at, found) = match placed {
                    Some(Placed { text, at, .. }) => (at, format!("{text:?}")),
                    None => (self.end, "the end".to_owned()),
                };
                return Err(wrong(at, format!("expected a number, a name or (, found {found}")));
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ParseError> {
        if self.take(")") { Ok(()) } else { Err(wrong(self.at(), "expected )")) }
    }

    fn named(&mut self, name: &str) -> Result<(), ParseError> {
        let at = self.tokens[self.next - 1].at;
        let is_call = self.take("(");
        let lower = name.to_lowercase();
        let variable = self.variables.iter().position(|variable| variable == name);
        let value = variable.map(Instruction::Load);
        let value = value.or_else(|| functions::constant(&lower).map(Instruction::Push));
        match (value, functions::function(&lower)) {
            (Some(_), _) if is_call => Err(wrong(at, format!("{name} is not a function"))),
            (Some(value), _) => {
                self.program.push(value);
                Ok(())
            }
            (None, Some(function)) if is_call => {
                let count = self.arguments()?;
                if !function.takes.contains(&count) {
                    return Err(wrong(at, format!("{}, not {count}", function.wants())));
                }
                self.apply(function, count);
                Ok(())
            }
            (None, Some(_)) => Err(wrong(at, format!("{name} is a function: write {name}(x)"))),
            (None, None) => {
                let variables = self.variables.iter().cloned();
                let known: Vec<_> = variables.chain(functions::names()).collect();
                let known = known.join(", ");
                Err(wrong(at, format!("{name} is not defined; available: {known}")))
            }
        }
    }

    /// The arguments of a call up to its closing parenthesis; returns how many there are.
    fn arguments(&mut self) -> Result<usize, ParseError> {
        if self.take(")") {
            return Ok(0);
        }
        self.operation(0)?;
        let mut count = 1;
        while self.take(",") {
            self.operation(0)?;
            count += 1;
        }
        self.close()?;
        Ok(count)
    }
}

fn wrong(at: usize, reason: impl Into<String>) -> ParseError {
    ParseError { at, reason: reason.into() }
}

fn tokens(text: &str) -> Result<Vec<Placed<'_>>, ParseError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let mut at = 1 + text.chars().count() - rest.chars().count();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let number = rest[..length].parse().ok().filter(|it: &f64| it.is_finite());
            let not_a_number = || wrong(at, format!("{:?} is not a number", &rest[..length]));
            (Token::Number(number.ok_or_else(not_a_number)?), length)
        } else if first.is_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            (Token::Name(&rest[..length]), length)
        } else {
            let (spelling, symbol) = SYMBOLS
                .iter()
                .find(|(spelling, _)| rest.starts_with(spelling))
                .ok_or_else(|| wrong(at, format!("unexpected character {first:?}")))?;
            (Token::Symbol(symbol), spelling.len())
        };
        tokens.push(Placed { token, text: &rest[..length], at });
        let after = rest[length..].trim_start();
        at += rest[..rest.len() - after.len()].chars().count();
        rest = after;
    }
    Ok(tokens)
}

/// Every spelling of every symbol; of two that begin alike, the longer one first.
const SYMBOLS: [(&str, &str); 16] = [
    ("**", "^"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("*", "*"),
    ("×", "*"),
    ("·", "*"),
    ("/", "/"),
    ("÷", "/"),
    ("%", "%"),
    ("^", "^"),
    ("!", "!"),
    ("(", "("),
    (")", ")"),
    (",", ","),
    (";", ","),
];

/// Digits and points, and an exponent if it is complete.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let mantissa = text.bytes().take_while(is_part).count();
    let Some(exponent) = text[mantissa..].strip_prefix(['e', 'E']) else { return mantissa };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(unsigned) {
        0 => mantissa,
        count => text.len() - unsigned.len() + count,
    }
}
