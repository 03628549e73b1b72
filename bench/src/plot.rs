//! Plots as SVG: lines on two logarithmic axes, readable on light and dark pages.

use std::fmt::Write;

/// One line of a plot.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
const COLORS: [&str; 6] = ["#2f6fde", "#d9622b", "#2a9d5c", "#9b4fc4", "#c23b57", "#7a7a7a"];

/// Powers of ten around the values of an axis.
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = values.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        #[expect(clippy::cast_possible_truncation, reason = "powers of ten of measured values")]
        let (low, high) = (low as i32, high as i32);
        Self { low, high: high.max(low + 1) }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low)
    }
}

/// Draws curves. Points without a logarithm are left out.
pub(crate) fn draw(title: &str, (x_name, y_name): (&str, &str), curves: &[Curve]) -> String {
    let drawn = |curve: &Curve| -> Vec<(f64, f64)> {
        curve.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0).collect()
    };
    let all: Vec<(f64, f64)> = curves.iter().flat_map(drawn).collect();
    if all.is_empty() {
        return String::new();
    }
    let x = Axis::around(all.iter().map(|point| point.0));
    let y = Axis::around(all.iter().map(|point| point.1));
    let at = |(px, py): (f64, f64)| {
        let across = LEFT + x.place(px) * (WIDTH - LEFT - RIGHT);
        let down = HEIGHT - BOTTOM - y.place(py) * (HEIGHT - TOP - BOTTOM);
        (across, down)
    };
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#808080">
<text x="{LEFT}" y="18" font-size="14">{title}</text>
"##
    );
    grid(&mut svg, &x, &y, at);
    let _ = writeln!(
        svg,
        r#"<text x="{}" y="{}" text-anchor="middle">{x_name}</text>
<text x="14" y="{}" text-anchor="middle" transform="rotate(-90 14 {})">{y_name}</text>"#,
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 8.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0,
    );
    for (place, curve) in curves.iter().enumerate() {
        let points: Vec<(f64, f64)> = drawn(curve).into_iter().map(at).collect();
        line(&mut svg, COLORS[place % COLORS.len()], &points);
        let top = TOP + 10.0 + 18.0 * place as f64;
        let (color, across) = (COLORS[place % COLORS.len()], WIDTH - RIGHT + 12.0);
        let _ = writeln!(
            svg,
            r#"<rect x="{across}" y="{}" width="12" height="3" fill="{color}"/><text x="{}" y="{top}">{}</text>"#,
            top - 5.0,
            across + 18.0,
            curve.name
        );
    }
    svg + "</svg>\n"
}

fn grid(svg: &mut String, x: &Axis, y: &Axis, at: impl Fn((f64, f64)) -> (f64, f64)) {
    let (left, bottom) = at((10_f64.powi(x.low), 10_f64.powi(y.low)));
    let (right, top) = at((10_f64.powi(x.high), 10_f64.powi(y.high)));
    for power in x.low..=x.high {
        let (across, _) = at((10_f64.powi(power), 10_f64.powi(y.low)));
        let _ = writeln!(
            svg,
            r##"<path d="M{across:.1} {bottom:.1}V{top:.1}" stroke="#80808040"/><text x="{across:.1}" y="{:.1}" text-anchor="middle">{}</text>"##,
            bottom + 16.0,
            label(power)
        );
    }
    for power in y.low..=y.high {
        let (_, down) = at((10_f64.powi(x.low), 10_f64.powi(power)));
        let _ = writeln!(
            svg,
            r##"<path d="M{left:.1} {down:.1}H{right:.1}" stroke="#80808040"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
            left - 6.0,
            down + 4.0,
            label(power)
        );
    }
}

fn line(svg: &mut String, color: &str, points: &[(f64, f64)]) {
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let path = path.join(" ");
    let _ = writeln!(
        svg,
        r#"<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>"#
    );
    for (x, y) in points {
        let _ = writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{color}"/>"#);
    }
}

fn label(power: i32) -> String {
    match power {
        0..3 => format!("{}", 10_f64.powi(power)),
        3..6 => format!("{}k", 10_f64.powi(power - 3)),
        6..9 => format!("{}M", 10_f64.powi(power - 6)),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_line_for_every_curve() {
        let curve = |name: &str| Curve {
            name: name.to_owned(),
            points: vec![(1.0, 2.0), (1000.0, 0.0), (1000.0, 30.0)],
        };
        let svg = draw("t", ("x", "y"), &[curve("a"), curve("b")]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains(">1k<") && svg.ends_with("</svg>\n"));
        assert_eq!(draw("t", ("x", "y"), &[]), "");
    }
}
