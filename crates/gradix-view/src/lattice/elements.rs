//! The elements of an argument that is read through one index: which are read, and from where.
//!
//! Those of a vector stand below the index, with a line from each point to the element that it reads; those of a matrix are
//! a panel of their own. Elements that are read are blue, the one in question is black, and the others are specks.

use super::draw::{PALE, outline, solutions};
use super::panel::{Panel, unit};
use super::{Elements, Lattice};
use crate::svg::BLUE;

/// How far below the index the elements stand, in pixels.
const FALL: f64 = 90.0;

/// The index above, the elements of a vector below.
pub fn vector(lattice: &Lattice, elements: &Elements) -> Panel {
    let index = lattice.domain.iter().chain(&lattice.lattice).map(|point| point[0]);
    let all: Vec<i64> = index.chain([0, elements.extents[0] - 1]).collect();
    let (low, high) = (all.iter().min().unwrap_or(&0) - 1, all.iter().max().unwrap_or(&0) + 1);
    let top = (FALL / unit(high - low + 1)).ceil() as i64;
    let name = &lattice.names[0];
    let caption = format!("index {name} above, elements {} below: {}", access(elements), counted(elements));
    let mut panel = Panel::new([low, 0], [high, top], [&elements.names[0], ""], &caption);
    panel.upper_axis(name);
    outline(&mut panel, &lattice.domain, top);
    for (element, index) in
        elements.readers.iter().flat_map(|(element, readers)| readers.iter().map(move |i| (element, i)))
    {
        let style = match *element == elements.chosen {
            true => "stroke=\"black\" stroke-width=\"1.5\"".into(),
            false => format!("stroke=\"{BLUE}\" stroke-width=\"0.8\" stroke-opacity=\"0.6\""),
        };
        panel.line([*index as f64, top as f64], [element[0] as f64, 0.0], &style);
    }
    lattice.domain.iter().for_each(|point| panel.dot([point[0], top], 2.0, PALE));
    solutions(&mut panel, lattice, |point| [point[0], top]);
    (0..elements.extents[0]).for_each(|element| mark(&mut panel, elements, &[element], [element, 0]));
    panel
}

/// The elements of a matrix, each with the index that reads it.
pub fn matrix(lattice: &Lattice, elements: &Elements) -> Panel {
    let [rows, columns] = [0, 1].map(|dimension| elements.extents[dimension]);
    let [a, b] = [0, 1].map(|dimension| elements.names[dimension].as_str());
    let caption = format!("elements {} with their {}: {}", access(elements), lattice.names[0], counted(elements));
    let mut panel = Panel::around(&[[0, 0], [rows - 1, columns - 1]], [a, b], &caption);
    for element in (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column])) {
        mark(&mut panel, elements, &element, element);
    }
    for (element, readers) in &elements.readers {
        let chosen = *element == elements.chosen;
        if panel.unit >= 22.0 || chosen {
            let [x, y] = panel.at([element[0] as f64, element[1] as f64]);
            let colour = if chosen { "black" } else { BLUE };
            let style = format!("fill=\"{colour}\" text-anchor=\"end\" font-size=\"11\"");
            panel.text([x - 4.0, y - 6.0], &listed(readers), &style);
        }
    }
    panel
}

fn mark(panel: &mut Panel, elements: &Elements, element: &[i64], place: [i64; 2]) {
    let radius = panel.radius();
    match (elements.readers.contains_key(element), elements.chosen == element) {
        (true, true) => panel.dot(place, radius, "black"),
        (false, true) => panel.ring(place, radius),
        (true, false) => panel.dot(place, radius - 1.0, BLUE),
        (false, false) => panel.dot(place, 2.0, PALE),
    }
}

/// All elements, as they are written.
fn access(elements: &Elements) -> String {
    format!("{}[{}]", elements.tensor, elements.names.join(", "))
}

fn counted(elements: &Elements) -> String {
    let (read, all) = (elements.readers.len(), elements.extents.iter().product::<i64>());
    format!("{read} of {all} {}", if read == 1 { "is read" } else { "are read" })
}

/// Indices in ascending order, in little space.
fn listed(indices: &[i64]) -> String {
    match indices {
        [first, .., last] if indices.len() > 2 && last - first + 1 == indices.len() as i64 => format!("{first}…{last}"),
        [first, second, _, ..] => format!("{first}, {second}, …"),
        _ => indices.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_listed_in_little_space() {
        let texts = [&[4][..], &[0, 1], &[2, 3, 4, 5], &[0, 3, 6, 9]].map(listed);
        assert_eq!(texts, ["4", "0, 1", "2…5", "0, 3, …"]);
    }
}
