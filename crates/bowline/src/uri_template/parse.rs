//! Parses a template, and rejects invalid ones.

use std::collections::HashSet;

use super::expand::{is_triplet, push_reserved};
use super::{Expression, Operator, Part, TemplateError, UriTemplate, Variable};

/// RFC 6570, 2.4.1.
const MAX_PREFIX: usize = 9999;

pub(super) fn parse(text: &str) -> Result<Vec<Part>, TemplateError> {
    if text.len() > UriTemplate::MAX_LENGTH {
        let most = UriTemplate::MAX_LENGTH;
        return refuse(most, format!("the template has more than {most} bytes"));
    }
    let mut parser = Parser { text, at: 0, parts: Vec::new(), names: HashSet::new() };
    while parser.at < text.len() {
        parser.next_part()?;
    }
    Ok(parser.parts)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    parts: Vec<Part>,
    names: HashSet<&'a str>,
}

impl<'a> Parser<'a> {
    fn next_part(&mut self) -> Result<(), TemplateError> {
        let rest = &self.text[self.at..];
        let Some(inside) = rest.strip_prefix('{') else {
            let literal = &rest[..rest.find('{').unwrap_or(rest.len())];
            check_literal(self.at, literal)?;
            let mut encoded = String::with_capacity(literal.len());
            push_reserved(&mut encoded, literal);
            self.parts.push(Part::Literal(encoded));
            self.at += literal.len();
            return Ok(());
        };
        let Some(end) = inside.find('}') else {
            return refuse(self.at, "`{` is never closed");
        };
        let expression = self.expression(&inside[..end])?;
        self.append(expression)?;
        self.at += end + 2;
        Ok(())
    }

    fn expression(&mut self, inside: &'a str) -> Result<Expression, TemplateError> {
        let start = self.at + 1;
        let operator = operator(start, inside)?;
        let list = if operator == Operator::Simple { inside } else { &inside[1..] };
        let mut at = start + inside.len() - list.len();
        let mut variables: Vec<Variable> = Vec::new();
        for spec in list.split(',') {
            if !operator.is_named() && variables.last().is_some_and(|before| before.exploded) {
                return refuse(at, "no variable can follow one with `*`");
            }
            let (name, variable) = variable(at, spec)?;
            if !self.names.insert(name) {
                return refuse(at, format!("the variable `{name}` is repeated"));
            }
            if self.names.len() > UriTemplate::MAX_VARIABLES {
                let most = UriTemplate::MAX_VARIABLES;
                return refuse(at, format!("the template has more than {most} variables"));
            }
            variables.push(variable);
            at += spec.len() + 1;
        }
        let behind_question = self.text[..self.at].contains('?');
        Ok(Expression { operator, variables, behind_question })
    }

    fn append(&mut self, mut expression: Expression) -> Result<(), TemplateError> {
        let Some(Part::Expression(before)) = self.parts.last_mut() else {
            self.parts.push(Part::Expression(expression));
            return Ok(());
        };
        if expression.operator.first().is_none() {
            return refuse(self.at, "nothing tells where the variable before ends and this begins");
        }
        // Parameters may be in any order, so `{?x}{&y}` is `{?x,y}`.
        let joins = expression.operator == Operator::QueryMore
            && matches!(before.operator, Operator::Query | Operator::QueryMore);
        if joins {
            before.variables.append(&mut expression.variables);
        } else {
            self.parts.push(Part::Expression(expression));
        }
        Ok(())
    }
}

fn operator(at: usize, inside: &str) -> Result<Operator, TemplateError> {
    let Some(sign) = inside.chars().next() else {
        return refuse(at, "`{}` names no variable");
    };
    Ok(match sign {
        '+' => Operator::Reserved,
        '#' => Operator::Fragment,
        '.' => Operator::Label,
        '/' => Operator::Path,
        ';' => Operator::PathParameter,
        '?' => Operator::Query,
        '&' => Operator::QueryMore,
        '=' | ',' | '!' | '@' | '|' => {
            return refuse(at, format!("the operator `{sign}` is reserved by RFC 6570"));
        }
        _ => Operator::Simple,
    })
}

fn variable(at: usize, spec: &str) -> Result<(&str, Variable), TemplateError> {
    let (name, exploded) = spec.strip_suffix('*').map_or((spec, false), |name| (name, true));
    let (name, prefix) = match name.split_once(':') {
        Some((name, _)) if exploded => {
            return refuse(at + name.len(), "`:` and `*` exclude each other");
        }
        Some((name, digits)) => (name, Some(prefix(at + name.len() + 1, digits)?)),
        None => (name, None),
    };
    if name.is_empty() {
        return refuse(at, "a variable has no name");
    }
    let is_wrong = |sign: char| !(sign.is_ascii_alphanumeric() || sign == '_' || sign == '.');
    if let Some((place, sign)) = name.char_indices().find(|(_, sign)| is_wrong(*sign)) {
        return refuse(at + place, format!("`{sign}` is not allowed in the name of a variable"));
    }
    if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return refuse(at, "a `.` in a variable's name stands between letters");
    }
    Ok((name, Variable { name: name.to_owned(), prefix, exploded }))
}

fn prefix(at: usize, digits: &str) -> Result<usize, TemplateError> {
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse() {
        Ok(most) if is_number && most <= MAX_PREFIX => Ok(most),
        _ => refuse(at, format!("expected a length from 1 to {MAX_PREFIX}")),
    }
}

fn check_literal(start: usize, literal: &str) -> Result<(), TemplateError> {
    for (place, sign) in literal.char_indices() {
        let at = start + place;
        match sign {
            '}' => return refuse(at, "`}` closes nothing"),
            '%' if !is_triplet(&literal.as_bytes()[place..]) => {
                return refuse(at, "`%` stands before two hexadecimal digits");
            }
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' => {
                return refuse(at, format!("`{sign}` is not allowed in a URI"));
            }
            _ if sign.is_control() => return refuse(at, "a control character"),
            _ => {}
        }
    }
    Ok(())
}

fn refuse<T>(at: usize, reason: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError { at, reason: reason.into() })
}
