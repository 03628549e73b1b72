//! From text to an expression: precedence climbing over a list of tokens.

use super::expression::{MAX_LENGTH, Node, ParseError};
use super::functions::{self, Operator};

/// How deeply parentheses, signs and powers may be nested. Evaluating recurses as deeply.
const MAX_DEPTH: usize = 128;

const OPERAND: &str = "a number, a name or ( should stand";

#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    Number(f64),
    Name(&'a str),
    Operator(Operator),
    Factorial,
    Open,
    Close,
    Comma,
}

/// A token, its text, and the character that it begins at, the first being 1.
#[derive(Debug, Clone)]
struct Placed<'a> {
    token: Token<'a>,
    text: &'a str,
    at: usize,
}

/// Reads one expression.
pub(super) struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    next: usize,
    end: usize,
    depth: usize,
    variables: &'a [String],
}

impl<'a> Parser<'a> {
    pub(super) fn parse(text: &'a str, variables: &'a [String]) -> Result<Node, ParseError> {
        if text.len() > MAX_LENGTH {
            return Err(wrong(1, format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(wrong(1, "it is empty"));
        }
        let end = text.chars().count() + 1;
        let mut parser = Self { tokens, next: 0, end, depth: 0, variables };
        let node = parser.sum_from(0)?;
        match parser.peek() {
            None => Ok(node),
            Some(placed) => Err(match placed.token {
                Token::Close => wrong(placed.at, "a ) too many"),
                Token::Comma => wrong(placed.at, "a , outside of a function"),
                _ => wrong(placed.at, format!("an operator is missing before {:?}", placed.text)),
            }),
        }
    }

    fn peek(&self) -> Option<&Placed<'a>> {
        self.tokens.get(self.next)
    }

    fn take(&mut self, token: &Token<'_>) -> bool {
        let is_it = self.peek().is_some_and(|placed| placed.token == *token);
        self.next += usize::from(is_it);
        is_it
    }

    /// Operands joined by operators that bind at least this strongly.
    fn sum_from(&mut self, strength: u8) -> Result<Node, ParseError> {
        let depth = self.depth;
        self.descend()?;
        let first = self.operand()?;
        let mut rest = Vec::new();
        while let Some(Token::Operator(operator)) = self.peek().map(|placed| placed.token.clone()) {
            if operator.strength() < strength {
                break;
            }
            self.next += 1;
            // What binds more strongly is in there already: the rest goes from left to right.
            rest.push((operator, self.sum_from(operator.strength_of_right())?));
        }
        self.depth = depth;
        Ok(if rest.is_empty() { first } else { Node::Chain(Box::new(first), rest) })
    }

    fn descend(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let at = self.peek().map_or(self.end, |placed| placed.at);
        Err(wrong(at, format!("it is nested more than {MAX_DEPTH} deep")))
    }

    /// A number, a name, a call, or something in parentheses; with signs before it, `!` behind it.
    fn operand(&mut self) -> Result<Node, ParseError> {
        if self.take(&Token::Operator(Operator::Minus)) {
            // As in mathematics, -2 ^ 2 is -(2 ^ 2).
            return Ok(Node::Negated(Box::new(self.sum_from(Operator::Power.strength())?)));
        }
        if self.take(&Token::Operator(Operator::Plus)) {
            return self.sum_from(Operator::Power.strength());
        }
        let mut node = self.atom()?;
        while self.take(&Token::Factorial) {
            self.descend()?;
            node = Node::Factorial(Box::new(node));
        }
        Ok(node)
    }

    fn atom(&mut self) -> Result<Node, ParseError> {
        let Some(placed) = self.peek().cloned() else {
            return Err(wrong(self.end, format!("it ends where {OPERAND}")));
        };
        self.next += 1;
        match placed.token {
            Token::Number(number) => Ok(Node::Number(number)),
            Token::Name(name) => self.named(name, placed.at),
            Token::Open => {
                let node = self.sum_from(0)?;
                self.close()?;
                Ok(node)
            }
            _ => Err(wrong(placed.at, format!("{:?} where {OPERAND}", placed.text))),
        }
    }

    fn close(&mut self) -> Result<(), ParseError> {
        if self.take(&Token::Close) {
            return Ok(());
        }
        let at = self.peek().map_or(self.end, |placed| placed.at);
        Err(wrong(at, "a ) is missing"))
    }

    fn named(&mut self, name: &str, at: usize) -> Result<Node, ParseError> {
        let is_call = self.take(&Token::Open);
        let lower = name.to_lowercase();
        let variable = self.variables.iter().position(|variable| variable == name);
        let function = functions::function(&lower);
        match (variable, functions::constant(&lower), function) {
            (Some(_), _, _) | (_, Some(_), _) if is_call => {
                Err(wrong(at, format!("{name} is no function")))
            }
            (Some(index), _, _) => Ok(Node::Variable(index)),
            (_, Some(value), _) => Ok(Node::Number(value)),
            (_, _, Some(function)) if is_call => {
                let arguments = self.arguments()?;
                if !function.takes.contains(&arguments.len()) {
                    let reason = function.wants();
                    return Err(wrong(at, format!("{reason}, not {}", arguments.len())));
                }
                Ok(Node::Call(function, arguments))
            }
            (_, _, Some(_)) => Err(wrong(at, format!("{name} is a function: write {name}(x)"))),
            (None, None, None) => {
                let variables = self.variables.iter().cloned();
                let known: Vec<String> =
                    variables.chain(functions::names().map(str::to_owned)).collect();
                Err(wrong(at, format!("{name} is unknown; known are {}", known.join(", "))))
            }
        }
    }

    /// What stands between parentheses behind a function's name.
    fn arguments(&mut self) -> Result<Vec<Node>, ParseError> {
        let mut arguments = Vec::new();
        if self.take(&Token::Close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.sum_from(0)?);
            if !self.take(&Token::Comma) {
                self.close()?;
                return Ok(arguments);
            }
        }
    }
}

fn wrong(at: usize, reason: impl Into<String>) -> ParseError {
    ParseError { at, reason: reason.into() }
}

fn tokens(text: &str) -> Result<Vec<Placed<'_>>, ParseError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut at = 1;
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let number = rest[..length].parse().ok().filter(|it: &f64| it.is_finite());
            let number =
                number.ok_or_else(|| wrong(at, format!("{:?} is no number", &rest[..length])))?;
            (Some(Token::Number(number)), length)
        } else if first.is_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            (Some(Token::Name(&rest[..length])), length)
        } else {
            let (token, length) =
                symbol(rest).ok_or_else(|| wrong(at, format!("{first:?} means nothing here")))?;
            (Some(token), length)
        };
        let taken = &rest[..length];
        tokens.extend(token.map(|token| Placed { token, text: taken, at }));
        at += taken.chars().count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Digits and points, and an exponent if there is a whole one.
fn number_length(text: &str) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| is_digit(byte)).count();
    let mantissa = bytes.iter().take_while(|byte| is_digit(byte) || **byte == b'.').count();
    if !matches!(bytes.get(mantissa), Some(b'e' | b'E')) {
        return mantissa;
    }
    let sign = usize::from(matches!(bytes.get(mantissa + 1), Some(b'+' | b'-')));
    let exponent = mantissa + 1 + sign;
    match digits(exponent.min(bytes.len())) {
        0 => mantissa,
        count => exponent + count,
    }
}

fn symbol(text: &str) -> Option<(Token<'static>, usize)> {
    const SYMBOLS: [(&str, Token<'static>); 16] = [
        ("**", Token::Operator(Operator::Power)),
        ("+", Token::Operator(Operator::Plus)),
        ("-", Token::Operator(Operator::Minus)),
        ("−", Token::Operator(Operator::Minus)),
        ("*", Token::Operator(Operator::Times)),
        ("×", Token::Operator(Operator::Times)),
        ("·", Token::Operator(Operator::Times)),
        ("/", Token::Operator(Operator::Over)),
        ("÷", Token::Operator(Operator::Over)),
        ("%", Token::Operator(Operator::Modulo)),
        ("^", Token::Operator(Operator::Power)),
        ("!", Token::Factorial),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
        (";", Token::Comma),
    ];
    let (symbol, token) = SYMBOLS.iter().find(|(symbol, _)| text.starts_with(symbol))?;
    Some((token.clone(), symbol.len()))
}
