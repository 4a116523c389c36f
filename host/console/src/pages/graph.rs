//! The CAs of a page as a graph: an SVG in which a line leads from each CA to the CAs that it signed. All of its contents are
//! also in the tree of the same page.

use chrono::{DateTime, Utc};
use keywright_core::credential::{AuthorityTree, FOREST_SIGNED_MAX};
use maud::{Markup, html};

use crate::page::{is_soon, last_characters};

/// Renders trees as a graph.
pub(super) fn graph(trees: &[AuthorityTree], now: DateTime<Utc>) -> Markup {
    let mut placed = Placed::default();
    for tree in trees {
        placed.place(tree, 0);
    }
    let width = (placed.depth + 1) * COLUMN_WIDTH;
    let height = placed.rows * ROW_HEIGHT;
    html! {
        svg.graph width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby="graph-title graph-text" {
            title id="graph-title" { "CAs and the CAs that they signed" }
            desc id="graph-text" { "A line leads from each CA to the CAs that it signed. The list above has the same content as text." }
            @for (from, to) in &placed.lines { path d=(curve(*from, *to)) {} }
            @for node in &placed.nodes { (boxed(node, now)) }
        }
    }
}

/// The upper left corner of a box.
type Corner = (usize, usize);

#[derive(Default)]
struct Placed<'a> {
    nodes: Vec<(Corner, &'a AuthorityTree)>,
    lines: Vec<(Corner, Corner)>,
    rows: usize,
    depth: usize,
}

impl<'a> Placed<'a> {
    /// Places a CA next to the first CA below it. Returns its corner.
    fn place(&mut self, tree: &'a AuthorityTree, depth: usize) -> Corner {
        let corner = (depth * COLUMN_WIDTH, self.rows * ROW_HEIGHT);
        self.depth = self.depth.max(depth);
        self.nodes.push((corner, tree));
        for below in &tree.below {
            let child = self.place(below, depth + 1);
            self.lines.push((corner, child));
        }
        if tree.below.is_empty() {
            self.rows += 1;
        }
        corner
    }
}

fn boxed(((left, top), tree): &(Corner, &AuthorityTree), now: DateTime<Utc>) -> Markup {
    let expires_at = tree.effective_expires_at;
    let mark = match expires_at {
        Some(time) if time <= now => Some("late"),
        Some(time) if is_soon(time, now) => Some("soon"),
        _ => None,
    };
    let state = match (mark, tree.is_in_rotation) {
        (Some("late"), _) => "expired",
        (_, true) => "in rotation",
        (Some(_), _) => "soon",
        (None, false) => "",
    };
    html! {
        g {
            rect class=[mark] x=(left + 1) y=(top + 6) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="6" {}
            text x=(left + 12) y=(top + 25) { (last_characters(tree.name.as_str(), NAME_CHARACTERS_MAX)) }
            text.detail x=(left + 12) y=(top + 42) {
                @match expires_at {
                    Some(time) => { "until " (time.format("%Y-%m-%d")) }
                    None => "expiry unknown",
                }
                @if !state.is_empty() { ", " (state) }
            }
            text.detail x=(left + 12) y=(top + 58) { (signed_count(tree)) }
        }
    }
}

/// Returns how many credentials a CA signed, except the CAs below it.
fn signed_count(tree: &AuthorityTree) -> String {
    match (tree.signed.len(), tree.has_more_signed) {
        (_, true) => format!("signed more than {FOREST_SIGNED_MAX}"),
        (0, false) => String::new(),
        (1, false) => "signed 1 credential".to_owned(),
        (count, false) => format!("signed {count} credentials"),
    }
}

/// Returns a line between two boxes, from the right side of the first to the left side of the second.
fn curve((from_left, from_top): Corner, (to_left, to_top): Corner) -> String {
    let (x, y) = (from_left + BOX_WIDTH + 1, from_top + 6 + BOX_HEIGHT / 2);
    let (to_x, to_y) = (to_left + 1, to_top + 6 + BOX_HEIGHT / 2);
    let middle = usize::midpoint(x, to_x);
    format!("M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}")
}

const BOX_WIDTH: usize = 230;
const BOX_HEIGHT: usize = 62;
const COLUMN_WIDTH: usize = 280;
const ROW_HEIGHT: usize = 76;

/// The maximum length of a name in a box, in characters.
const NAME_CHARACTERS_MAX: usize = 26;
