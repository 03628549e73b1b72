//! What keys do.

use bowline_gateway::view::Filter;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Tab, Typing, View};

impl View {
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.notice.clear();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            self.is_over = true;
        } else if let Some(typing) = self.typing.take() {
            self.type_key(typing, key.code);
        } else {
            self.command(key.code);
        }
    }

    /// A key while a line is being typed.
    fn type_key(&mut self, mut typing: Typing, key: KeyCode) {
        match key {
            KeyCode::Esc => return,
            KeyCode::Enter if typing.is_search => {
                self.search = typing.text.to_lowercase();
                return self.find(true);
            }
            KeyCode::Enter => {
                match Filter::parse(&typing.text) {
                    Ok(filter) => (self.filter, self.filter_text) = (filter, typing.text),
                    Err(problem) => {
                        self.notice = problem;
                        self.typing = Some(typing);
                    }
                }
                return;
            }
            KeyCode::Backspace => drop(typing.text.pop()),
            KeyCode::Char(letter) => typing.text.push(letter),
            _ => {}
        }
        self.typing = Some(typing);
    }

    fn command(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('q') => self.is_over = true,
            KeyCode::Esc => {
                self.has_detail = false;
                (self.filter, self.filter_text) = (Filter::default(), String::new());
            }
            KeyCode::Char(digit @ '1'..='4') => {
                self.tab = Tab::ALL[usize::from(u8::try_from(digit).unwrap_or(b'1') - b'1')].0;
            }
            KeyCode::Tab => {
                let at = Tab::ALL.iter().position(|(tab, _)| *tab == self.tab);
                self.tab = Tab::ALL[(at.unwrap_or_default() + 1) % Tab::ALL.len()].0;
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-(isize::try_from(self.page).unwrap_or(1))),
            KeyCode::PageDown => self.step(isize::try_from(self.page).unwrap_or(1)),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            KeyCode::Enter => self.has_detail = !self.has_detail,
            KeyCode::Char('J') => self.detail_offset = self.detail_offset.saturating_add(1),
            KeyCode::Char('K') => self.detail_offset = self.detail_offset.saturating_sub(1),
            KeyCode::Char('F') => self.follows = !self.follows,
            KeyCode::Char('g') => self.is_grouped = !self.is_grouped,
            KeyCode::Char('e') => self.export(),
            KeyCode::Char('f') => {
                self.typing = Some(Typing { is_search: false, text: self.filter_text.clone() });
            }
            KeyCode::Char('/') => {
                self.typing = Some(Typing { is_search: true, text: String::new() });
            }
            KeyCode::Char('n') => self.find(true),
            KeyCode::Char('N') => self.find(false),
            _ => {}
        }
    }

    /// Selects the row so many places away; the last one is followed.
    fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        let place = self.place().saturating_add_signed(by).min(last);
        self.selected = self.shown.get(place).copied();
        self.follows = by > 0 && place == last;
        self.detail_offset = 0;
    }

    /// Selects the next row that contains what was searched for, or the one before.
    fn find(&mut self, is_forward: bool) {
        let Ok(wanted) = Filter::parse(&self.search) else { return };
        let here = self.place();
        let matches = |place: &usize| {
            let row = self.shown.get(*place).and_then(|number| self.model.row(*number));
            row.is_some_and(|row| wanted.matches(&self.model, row, self.now(row.session)))
        };
        let count = self.shown.len();
        let all: Vec<usize> = (here + 1..count).chain(0..count.min(here + 1)).collect();
        let found = if is_forward {
            all.into_iter().find(matches)
        } else {
            (0..here).rev().chain((here..count).rev()).find(matches)
        };
        match found {
            Some(place) => {
                self.selected = self.shown.get(place).copied();
                (self.follows, self.detail_offset) = (false, 0);
            }
            None => self.notice = format!("not found: {}", self.search),
        }
    }
}
