//! A form that is filled in field by field, from a schema. What is not touched stays away: nothing
//! becomes `null`, or a default, because somebody pressed Enter.

use serde_json::{Map, Value};

use super::field::{Field, Kind, fields, plain, resolve};

/// Objects within objects that are asked for field by field: 8. Deeper ones are typed as JSON.
const DEEPEST: usize = 8;

/// A form that is being filled in.
#[derive(Debug)]
pub(crate) struct Form {
    root: Value,
    frames: Vec<Frame>,
}

/// The fields of one object.
#[derive(Debug)]
struct Frame {
    fields: Vec<Field>,
    at: usize,
    filled: Map<String, Value>,
}

impl Frame {
    fn new(fields: Vec<Field>) -> Self {
        Self { fields, at: 0, filled: Map::new() }
    }
}

/// What to show before a field is filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// What can be said about it, line by line.
    pub(crate) about: Vec<String>,
    /// What stands before the cursor.
    pub(crate) prompt: String,
    /// What can be completed.
    pub(crate) choices: Vec<String>,
}

/// Where a form stands.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// There is something to ask.
    Ask(Ask),
    /// All is filled in.
    Done(Map<String, Value>),
}

/// The name of the whole, which nobody sees.
const WHOLE: &str = "";

impl Form {
    /// A form for an object that a schema describes.
    pub(crate) fn new(schema: &Value) -> Self {
        let mut whole = Field::new(schema, WHOLE, schema, true);
        if !matches!(whole.kind, Kind::Variants(_)) {
            whole.kind = Kind::Object;
        }
        let mut form = Self { root: schema.clone(), frames: vec![Frame::new(vec![whole])] };
        form.settle();
        form
    }

    /// What to ask next.
    pub(crate) fn step(&mut self) -> Step {
        match self.field() {
            Some(field) => Step::Ask(self.ask(field)),
            None => {
                let frame = self.frames.first_mut();
                let whole = frame.and_then(|frame| frame.filled.remove(WHOLE));
                match whole {
                    Some(Value::Object(filled)) => Step::Done(filled),
                    _ => Step::Done(Map::new()),
                }
            }
        }
    }

    /// Takes an answer.
    ///
    /// Nothing leaves a field away; `=` and JSON is that very value; a dot leaves away all that
    /// can be.
    pub(crate) fn take(&mut self, line: &str) -> Result<(), String> {
        let Some(field) = self.field().cloned() else { return Ok(()) };
        let text = line.trim();
        if text == "." {
            return self.skip_rest();
        }
        if text.is_empty() {
            return self.leave_away(&field);
        }
        if let Some(json) = text.strip_prefix('=') {
            let value = serde_json::from_str(json).map_err(|error| format!("no JSON: {error}"))?;
            self.put(value);
            return Ok(());
        }
        match &field.kind {
            Kind::Object if text == "+" && self.frames.len() <= DEEPEST => {
                self.frames.push(Frame::new(fields(&self.root, &field.schema)));
                self.settle();
                return Ok(());
            }
            Kind::Variants(variants) => {
                let number = text.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
                if let Some(variant) = number.and_then(|number| variants.get(number)) {
                    self.narrow(&field, &variant.schema);
                    return Ok(());
                }
            }
            _ => {}
        }
        let value = field.read(text)?;
        field.check(&self.root, &value)?;
        self.put(value);
        Ok(())
    }

    /// The field that is asked for.
    fn field(&self) -> Option<&Field> {
        let frame = self.frames.last()?;
        frame.fields.get(frame.at)
    }

    fn ask(&self, field: &Field) -> Ask {
        let mut about = Vec::new();
        about.extend(field.about.clone().filter(|_| field.name != WHOLE));
        for (index, choice) in field.kind.choices().iter().enumerate() {
            let label = choice.label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
            about.push(format!("  {} {}{label}", index + 1, plain(&choice.value)));
        }
        if let Kind::Variants(variants) = &field.kind {
            let lines = variants.iter().enumerate();
            about.extend(lines.map(|(index, it)| format!("  {} {}", index + 1, it.title)));
        }
        let mut words = vec![field.kind.name()];
        words.push(if field.is_required { "required" } else { "optional" }.to_owned());
        if let Some(default) = &field.default {
            words.push(format!("default {}", plain(default)));
        }
        match &field.kind {
            Kind::Object => words.push("+ to fill in, or JSON".to_owned()),
            Kind::Variants(_) => words.push("a number, or JSON".to_owned()),
            _ => {}
        }
        let choices = match field.kind {
            Kind::Boolean => vec!["yes".to_owned(), "no".to_owned()],
            _ => field.kind.choices().iter().map(|choice| plain(&choice.value)).collect(),
        };
        let prompt = format!("{} ({}): ", self.path(), words.join(", "));
        Ask { about, prompt: prompt.trim_start().to_owned(), choices }
    }

    /// The names from the outermost object to the field.
    fn path(&self) -> String {
        let names = self.frames.iter().filter_map(|frame| frame.fields.get(frame.at));
        let names = names.map(|field| field.name.as_str()).filter(|name| *name != WHOLE);
        names.collect::<Vec<_>>().join(".")
    }

    fn leave_away(&mut self, field: &Field) -> Result<(), String> {
        match (&field.default, field.is_required) {
            (Some(default), true) => {
                self.put(default.clone());
                Ok(())
            }
            (_, false) => {
                self.advance();
                Ok(())
            }
            (None, true) => {
                let empty = match field.kind {
                    Kind::Text => " (=\"\" for a text without a letter)",
                    _ => "",
                };
                Err(format!("{} is required{empty}", self.path()))
            }
        }
    }

    /// Leaves away everything up to the next field that must be there.
    fn skip_rest(&mut self) -> Result<(), String> {
        while let Some(field) = self.field().cloned() {
            self.leave_away(&field)?;
        }
        Ok(())
    }

    fn put(&mut self, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            if let Some(field) = frame.fields.get(frame.at) {
                frame.filled.insert(field.name.clone(), value);
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
        self.settle();
    }

    /// The field takes one of its forms, and is asked for again.
    fn narrow(&mut self, field: &Field, schema: &Value) {
        let mut narrowed = Field::new(&self.root, &field.name, schema, field.is_required);
        narrowed.default.clone_from(&field.default);
        let is_object = narrowed.kind == Kind::Object;
        if let Some(frame) = self.frames.last_mut()
            && let Some(place) = frame.fields.get_mut(frame.at)
        {
            *place = narrowed;
        }
        if is_object && self.frames.len() <= DEEPEST {
            let inner = fields(&self.root, &resolve(&self.root, schema));
            self.frames.push(Frame::new(inner));
        }
        self.settle();
    }

    /// Closes objects whose fields are all done, opens those that must be there.
    fn settle(&mut self) {
        loop {
            let depth = self.frames.len();
            let Some(frame) = self.frames.last() else { return };
            match frame.fields.get(frame.at) {
                None if depth > 1 => {
                    let done = self.frames.pop().map(|frame| frame.filled).unwrap_or_default();
                    let Some(outer) = self.frames.last_mut() else { return };
                    if let Some(field) = outer.fields.get(outer.at) {
                        outer.filled.insert(field.name.clone(), Value::Object(done));
                    }
                    outer.at += 1;
                }
                Some(field) if opens(field, depth) => {
                    let inner = fields(&self.root, &field.schema);
                    self.frames.push(Frame::new(inner));
                }
                _ => return,
            }
        }
    }
}

/// Whether an object is asked for field by field without a question.
fn opens(field: &Field, depth: usize) -> bool {
    let has_fields = field.schema.get("properties").is_some() || field.name == WHOLE;
    field.kind == Kind::Object && field.is_required && has_fields && depth <= DEEPEST
}

#[cfg(test)]
#[path = "form/tests.rs"]
mod tests;
