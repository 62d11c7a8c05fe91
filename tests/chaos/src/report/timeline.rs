//! The run as a picture: committed steps per second, and below them a bar for each fault.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Report;

const WIDTH: f64 = 1_200.0;
const LEFT: f64 = 150.0;
const CURVE: f64 = 140.0;
const ROW: f64 = 18.0;

pub fn draw(report: &Report<'_>) -> String {
    let ends = report.bars.iter().map(|bar| bar.to_ms).chain([report.faults_ended_ms]).max().unwrap_or(0);
    let seconds = ((ends - report.began_ms) as f64 / 1_000.0).max(1.0);
    let x = |ms: i64| LEFT + (ms - report.began_ms) as f64 / 1_000.0 / seconds * (WIDTH - LEFT - 10.0);
    let kinds: BTreeMap<&str, usize> = report.bars.iter().map(|bar| (bar.kind.as_str(), 0)).collect();
    let kinds: BTreeMap<&str, usize> = kinds.into_keys().zip(0..).collect();
    let top = CURVE + 40.0;
    let height = top + kinds.len() as f64 * ROW + 20.0;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    curve(report, seconds as usize, &x, &mut out);
    for (kind, row) in &kinds {
        let y = top + *row as f64 * ROW;
        let _ = writeln!(out, "<text x=\"6\" y=\"{}\">{kind}</text>", y + 11.0);
        let _ =
            writeln!(out, "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0}\" y2=\"{0}\" stroke=\"#eee\"/>", y + ROW - 2.0);
    }
    for bar in report.bars {
        let y = top + kinds.get(bar.kind.as_str()).copied().unwrap_or(0) as f64 * ROW;
        let width = (x(bar.to_ms) - x(bar.from_ms)).max(2.0);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"13\" fill=\"#c0392b\" fill-opacity=\"0.7\"><title>{} {}</title></rect>",
            x(bar.from_ms),
            escape(&bar.kind),
            escape(&bar.target)
        );
    }
    let every =
        [5, 10, 30, 60, 120, 300, 600, 1_800].into_iter().find(|s| seconds / f64::from(*s) <= 14.0).unwrap_or(3_600);
    for second in (0..=seconds as i64).step_by(usize::try_from(every).unwrap_or(60)) {
        let at = x(report.began_ms + second * 1_000);
        let _ = writeln!(out, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{second} s</text>", height - 4.0);
    }
    out.push_str("</svg>\n");
    out
}

/// Steps by the second of their commit; a clock that was set puts some of them elsewhere.
fn curve(report: &Report<'_>, seconds: usize, x: &impl Fn(i64) -> f64, out: &mut String) {
    let mut counts = vec![0_u64; seconds + 1];
    let items = report.seen.sessions.iter().flat_map(|session| &session.items).filter(|item| item.step.is_some());
    for item in items {
        let second = (item.at_ms - report.began_ms).div_euclid(1_000);
        if let Some(count) = usize::try_from(second).ok().and_then(|second| counts.get_mut(second)) {
            *count += 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let points: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(second, count)| {
            let at = x(report.began_ms + second as i64 * 1_000);
            format!("{at:.1},{:.1}", 20.0 + CURVE * (1.0 - *count as f64 / most as f64))
        })
        .collect();
    let base = 20.0 + CURVE;
    let _ = writeln!(out, "<text x=\"6\" y=\"32\">steps per second</text><text x=\"6\" y=\"48\">at most {most}</text>");
    let _ = writeln!(out, "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{base}\" y2=\"{base}\" stroke=\"#888\"/>");
    let _ = writeln!(out, "<polyline fill=\"none\" stroke=\"#2c6fbb\" points=\"{}\"/>", points.join(" "));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
