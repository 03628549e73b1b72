//! A form that is filled in property by property, from a schema. Enter never sends `null`. It sends
//! a default only if the property is required, or if the server asked: then the form comes filled
//! in. An optional argument of a tool is left out, and the server applies its own default.

use serde_json::{Map, Value};

use crate::arguments::typed;
use crate::loose::{self, Typed};
use crate::render::schema::kind;
use crate::schema::{Choice, Kinds, Property, View, unquoted};

/// Nested objects that are asked for property by property: 8. Deeper ones are typed as JSON.
const DEEPEST: usize = 8;

/// The name of the whole form, which is not shown.
const WHOLE: &str = "";

/// A form that is being filled in.
#[derive(Debug)]
pub(crate) struct Form {
    /// From the outermost object to the one that is being filled in.
    levels: Vec<Level>,
    /// Whether defaults are filled in already.
    has_defaults: bool,
}

#[derive(Debug, Default)]
struct Level {
    properties: Vec<Property>,
    at: usize,
    filled: Map<String, Value>,
}

/// What to show before a property is filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) about: Vec<String>,
    pub(crate) prompt: String,
    /// What Tab completes.
    pub(crate) choices: Vec<String>,
}

/// Where a form stands.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Ask(Ask),
    Done(Map<String, Value>),
}

impl Form {
    pub(crate) fn new(schema: &Value, has_defaults: bool) -> Self {
        let view = View::new(schema);
        let whole = Property { name: WHOLE.to_owned(), view, is_required: true };
        let whole = Level { properties: vec![whole], ..Level::default() };
        let mut form = Self { levels: vec![whole], has_defaults };
        form.settle();
        form
    }

    /// What to ask next.
    pub(crate) fn step(&mut self) -> Step {
        if let Some(property) = self.property() {
            return Step::Ask(self.ask(property));
        }
        match self.levels.first_mut().and_then(|level| level.filled.remove(WHOLE)) {
            Some(Value::Object(filled)) => Step::Done(filled),
            _ => Step::Done(Map::new()),
        }
    }

    /// Takes an answer. An empty one omits the property; a dot omits everything that can be;
    /// `=` sends the JSON after it, whatever the schema says.
    pub(crate) fn take(&mut self, line: &str) -> Result<(), String> {
        let Some(property) = self.property().cloned() else { return Ok(()) };
        let text = line.trim();
        if text == "." {
            while let Some(property) = self.property().cloned() {
                self.omit(&property)?;
            }
            return Ok(());
        }
        if text.is_empty() {
            return self.omit(&property);
        }
        if let Some(json) = text.strip_prefix('=') {
            let value =
                serde_json::from_str(json).map_err(|error| format!("invalid JSON: {error}"))?;
            self.put(Some(value));
            return Ok(());
        }
        let view = narrowed(&property.view);
        if text == "+" && is_object(&view) && self.levels.len() <= DEEPEST {
            self.open(&view);
            self.settle();
            return Ok(());
        }
        let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(variant) = number.and_then(|number| forms(&view).into_iter().nth(number)) {
            self.narrow(&variant);
            return Ok(());
        }
        let value = read(&property.view, text)
            .map_err(|problem| format!("{}: {problem}", property.name))?;
        property.view.check(&property.name, &value)?;
        property.view.check_format(&property.name, &value)?;
        self.put(Some(value));
        Ok(())
    }

    /// The property that is asked for.
    fn property(&self) -> Option<&Property> {
        let level = self.levels.last()?;
        level.properties.get(level.at)
    }

    fn ask(&self, property: &Property) -> Ask {
        let view = narrowed(&property.view);
        let mut about = Vec::new();
        about.extend(property.view.about().filter(|_| property.name != WHOLE).map(str::to_owned));
        let items = view.items().filter(|_| view.kinds().beside_null() == Kinds::ARRAY);
        let choices = view.choices().or_else(|| items.as_ref()?.choices()).unwrap_or_default();
        about.extend(choices.iter().enumerate().map(|(index, choice)| {
            let label = choice.label.as_ref().map(|label| format!("  {label}"));
            format!("  {} {}{}", index + 1, unquoted(&choice.value), label.unwrap_or_default())
        }));
        let forms = forms(&view).into_iter().enumerate();
        let forms: Vec<String> =
            forms.map(|(index, form)| format!("  {} {}", index + 1, title(&form, index))).collect();
        let mut words = vec![match (choices.is_empty(), &items) {
            (false, None) => "one of".to_owned(),
            (false, Some(_)) => "some of, with commas".to_owned(),
            (true, Some(_)) => format!("{}, with commas", kind(&view, 0)),
            (true, None) if !forms.is_empty() => "one of several forms".to_owned(),
            (true, None) if view.kinds() == Kinds::ANY => "any, as JSON or text".to_owned(),
            (true, None) => kind(&property.view, 0),
        }];
        words.push(if property.is_required { "required" } else { "optional" }.to_owned());
        let is_sent = property.is_required || self.has_defaults;
        words.extend(property.view.get("default").map(|it| match (unquoted(it), is_sent) {
            (default, true) => format!("Enter for {default}"),
            (default, false) => format!("the server's default is {default}"),
        }));
        if !forms.is_empty() {
            words.push("a number, or JSON".to_owned());
        } else if is_object(&view) {
            words.push("+ to fill in, or JSON".to_owned());
        }
        about.extend(forms);
        let prompt = format!("{} ({}): ", self.path(), words.join(", "));
        let choices = match items {
            Some(items) => items.suggestions(),
            None => view.suggestions(),
        };
        Ask { about, prompt: prompt.trim_start().to_owned(), choices }
    }

    /// The names from the outermost object to the property.
    fn path(&self) -> String {
        let names = self.levels.iter().filter_map(|level| level.properties.get(level.at));
        let names = names.map(|property| property.name.as_str()).filter(|name| *name != WHOLE);
        names.collect::<Vec<_>>().join(".")
    }

    fn omit(&mut self, property: &Property) -> Result<(), String> {
        let default = property.view.get("default");
        if !property.is_required && (default.is_none() || !self.has_defaults) {
            self.put(None);
            return Ok(());
        }
        let Some(default) = default else {
            let hint = match property.view.kinds() {
                Kinds::STRING => " (=\"\" sends an empty string)",
                _ => "",
            };
            return Err(format!("{} is required{hint}", self.path()));
        };
        self.put(Some(default.clone()));
        Ok(())
    }

    /// Fills in the property, or leaves it out, and goes on to the next.
    fn put(&mut self, value: Option<Value>) {
        self.fill(value);
        self.settle();
    }

    fn fill(&mut self, value: Option<Value>) {
        let Some(level) = self.levels.last_mut() else { return };
        if let (Some(property), Some(value)) = (level.properties.get(level.at), value) {
            level.filled.insert(property.name.clone(), value);
        }
        level.at += 1;
    }

    /// The property takes one of its forms, and is asked for again.
    fn narrow(&mut self, form: &View) {
        let is_object = is_object(form) && self.levels.len() <= DEEPEST;
        if let Some(level) = self.levels.last_mut()
            && let Some(property) = level.properties.get_mut(level.at)
        {
            property.view = form.clone();
        }
        if is_object {
            self.open(form);
        }
        self.settle();
    }

    fn open(&mut self, view: &View) {
        self.levels.push(Level { properties: view.own_properties(), ..Level::default() });
    }

    /// Closes objects that are filled in, and opens those that are required.
    fn settle(&mut self) {
        while let Some(level) = self.levels.last() {
            let depth = self.levels.len();
            match level.properties.get(level.at) {
                None if depth > 1 => {
                    let done = self.levels.pop().map(|level| level.filled).unwrap_or_default();
                    self.fill(Some(Value::Object(done)));
                }
                Some(property) if opens(property) && depth <= DEEPEST => {
                    let view = narrowed(&property.view);
                    self.open(&view);
                }
                _ => return,
            }
        }
    }
}

/// Whether an object is asked for property by property at once.
fn opens(property: &Property) -> bool {
    let view = narrowed(&property.view);
    if property.name == WHOLE {
        return forms(&view).is_empty();
    }
    property.is_required && is_object(&view) && view.get("properties").is_some()
}

fn is_object(view: &View) -> bool {
    let is_untyped = view.get("type").is_none() && view.get("properties").is_some();
    forms(view).is_empty() && (view.kinds().beside_null() == Kinds::OBJECT || is_untyped)
}

/// The forms to choose from, unless all values are listed.
fn forms(view: &View) -> Vec<View> {
    let variants = if view.choices().is_some() { Vec::new() } else { view.variants() };
    variants.into_iter().filter(|variant| variant.kinds() != Kinds::NULL).collect()
}

/// A form that is the only one beside `null` is not a choice.
fn narrowed(view: &View) -> View {
    match forms(view).as_slice() {
        [only] => only.clone(),
        _ => view.clone(),
    }
}

fn title(view: &View, index: usize) -> String {
    if let Some(title) = view.text("title").or_else(|| view.text("description")) {
        return title.to_owned();
    }
    if is_object(view) {
        let names = view.own_properties().into_iter().map(|property| property.name);
        return format!("object with {}", names.collect::<Vec<_>>().join(", "));
    }
    match view.kinds() {
        Kinds::ANY => format!("form {}", index + 1),
        _ => kind(view, 0),
    }
}

/// Reads what was typed into a property.
pub(super) fn read(view: &View, text: &str) -> Result<Value, String> {
    let kinds = view.kinds();
    if let Some(choices) = view.choices() {
        return choose(&choices, text);
    }
    if kinds.has(Kinds::NULL) && kinds != Kinds::ANY && text == "null" {
        return Ok(Value::Null);
    }
    let is_json = text.starts_with(['{', '[', '"']);
    if kinds == Kinds::ANY || !forms(&narrowed(view)).is_empty() {
        let bare = || Ok(Typed::Bare(text.to_owned()).into_value());
        return if is_json { loose::parse_value(text) } else { bare() };
    }
    if kinds.beside_null() == Kinds::ARRAY && !is_json {
        let items = view.items().unwrap_or_else(|| View::new(&Value::Bool(true)));
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        return parts.map(|part| read(&items, part)).collect::<Result<_, _>>().map(Value::Array);
    }
    typed(text, view).map_err(|()| format!("expected {}, got {text:?}", kind(view, 0)))
}

/// A choice by its value, its label, or its number, counted from 1.
fn choose(choices: &[Choice], text: &str) -> Result<Value, String> {
    let by_value = choices.iter().find(|choice| unquoted(&choice.value) == text);
    let by_label = || choices.iter().find(|choice| choice.label.as_deref() == Some(text));
    let by_number = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    let found = by_value.or_else(by_label).or_else(by_number);
    found.map(|choice| choice.value.clone()).ok_or_else(|| {
        let all: Vec<String> = choices.iter().map(|choice| unquoted(&choice.value)).collect();
        format!("expected one of {}, got {text:?}", all.join(", "))
    })
}

#[cfg(test)]
#[path = "form/tests.rs"]
mod tests;
