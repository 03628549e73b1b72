//! What a terminal shows of what is drawn.

use super::*;

const SIZE: Size = Size { columns: 10, rows: 6 };

fn bottom(text: &str, at: usize) -> Bottom {
    Bottom { prompt: "> ".to_owned(), text: text.to_owned(), at }
}

/// The rows of a screen of six rows by ten, and the cursor.
fn screen(bytes: &str) -> (Vec<String>, (u16, u16)) {
    let mut parser = vt100::Parser::new(6.try_into().unwrap(), 10.try_into().unwrap(), 0);
    // A terminal that is set so, as ours is, goes to the first column as well.
    parser.process(bytes.replace('\n', "\r\n").as_bytes());
    let screen = parser.screen();
    let rows = screen.rows(0, 10).map(|row| row.trim_end().to_owned()).collect::<Vec<_>>();
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    (rows[..used].to_vec(), screen.cursor_position())
}

fn check(text: &str, at: usize, rows: &[&str], cursor: (u16, u16)) {
    let mut out = String::new();
    Painter::default().draw(&bottom(text, at), SIZE, &mut out);
    let (found, place) = screen(&out);
    assert_eq!(found, rows, "{text}");
    assert_eq!(place, cursor, "{text} at {at}");
}

#[test]
fn lines_wrap_and_the_cursor_is_where_it_belongs() {
    check("", 0, &[">"], (0, 2));
    check("abc", 3, &["> abc"], (0, 5));
    check("abc", 1, &["> abc"], (0, 3));
    check("12345678", 8, &["> 12345678"], (1, 0));
    check("12345678", 7, &["> 12345678"], (0, 9));
    check("123456789", 9, &["> 12345678", "9"], (1, 1));
    check("123456789", 0, &["> 12345678", "9"], (0, 2));
    check("1234567漢", 10, &["> 1234567", "漢"], (1, 2));
    check("a\tb", 3, &["> a^Ib"], (0, 6));
}

#[test]
fn what_is_drawn_is_taken_away_without_a_trace() {
    for (text, at) in [("abc", 1), ("12345678", 8), ("1234567890123456789012", 3)] {
        let (mut painter, mut out) = (Painter::default(), "above\n".to_owned());
        painter.draw(&bottom(text, at), SIZE, &mut out);
        painter.erase(&mut out);
        out.push_str("news\n");
        painter.draw(&bottom("x", 1), SIZE, &mut out);
        assert_eq!(screen(&out), (vec!["above".into(), "news".into(), "> x".into()], (2, 3)));
    }
}

#[test]
fn a_line_that_is_left_stays() {
    let (mut painter, mut out) = (Painter::default(), String::new());
    painter.draw(&bottom("1234567890", 2), SIZE, &mut out);
    painter.leave(&bottom("1234567890", 2), SIZE, &mut out);
    out.push_str("after");
    assert_eq!(screen(&out).0, ["> 12345678", "90", "after"]);
}

#[test]
fn of_a_line_longer_than_the_screen_the_part_around_the_cursor_is_shown() {
    let text = "abcdefghij".repeat(50);
    for at in [0, 100, 250, 499, 500] {
        let (mut painter, mut out) = (Painter::default(), String::new());
        painter.draw(&bottom(&text, at), SIZE, &mut out);
        let (rows, _) = screen(&out);
        assert!(rows.len() <= 5, "{rows:?}");
        assert!(rows[0].starts_with('>'), "{rows:?}");
        painter.erase(&mut out);
        assert_eq!(screen(&out), (vec![], (0, 0)));
    }
}
