//! Pictures of the computation graphs of real programs.

use std::path::PathBuf;

use gradix::Program;
use gradix::explain::graph::graph;
use gradix_view::graph::svg;
use roxmltree::{Document, Node};

fn resolved(text: &str) -> Program {
    gradix::resolve(&gradix::syntax::parse(text).unwrap(), &[]).unwrap().program
}

fn derived(program: &Program) -> Program {
    gradix::derive(program, &Default::default()).unwrap().program
}

fn examples() -> Vec<(String, Program)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "gx")).collect();
    paths.sort();
    assert!(paths.len() > 50);
    paths.iter().map(|path| (path.display().to_string(), resolved(&std::fs::read_to_string(path).unwrap()))).collect()
}

fn elements<'a>(document: &'a Document, name: &'a str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name))).collect()
}

fn number(node: &Node, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().parse().unwrap()
}

#[test]
fn every_example_is_drawn_with_one_group_for_each_node_and_one_path_for_each_edge() {
    for (name, program) in examples() {
        let derivative = derived(&program);
        let (nodes, text) = (graph(&program, Some(&derivative)), svg(&program, Some(&derivative)).unwrap());
        let document = Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let titles: Vec<&str> = elements(&document, "title").iter().filter_map(|title| title.text()).collect();
        assert_eq!(titles, nodes.iter().map(|node| node.label.as_str()).collect::<Vec<_>>(), "{name}");
        let edges: usize = nodes.iter().map(|node| node.operands.len()).sum();
        let drawn = elements(&document, "path").iter().filter(|path| path.has_attribute("stroke")).count();
        assert_eq!(drawn, edges, "{name}");
    }
}

#[test]
fn everything_is_inside_of_the_picture() {
    for (name, program) in examples() {
        let text = svg(&program, Some(&derived(&program))).unwrap();
        let document = Document::parse(&text).unwrap();
        let root = document.root_element();
        let (width, height) = (number(&root, "width"), number(&root, "height"));
        for outline in elements(&document, "rect").iter().filter(|rect| rect.has_attribute("x")) {
            let (x, y) = (number(outline, "x"), number(outline, "y"));
            assert!(x >= 0.0 && x + number(outline, "width") <= width - 16.0, "{name}");
            assert!(y >= 0.0 && y + number(outline, "height") <= height - 16.0, "{name}");
        }
    }
}

#[test]
fn the_function_is_blue_and_the_derivative_red() {
    let program = resolved("input x\ny = sin(x)");
    let (blue, red) = ("#1a4fba", "#c8102e");
    let alone = svg(&program, None).unwrap();
    assert!(alone.contains(blue) && !alone.contains(red), "{alone}");
    let both = svg(&program, Some(&derived(&program))).unwrap();
    let document = Document::parse(&both).unwrap();
    let colour = |label: &str| {
        let title = elements(&document, "title").into_iter().find(|title| title.text() == Some(label)).unwrap();
        let outline = title.next_sibling_element().unwrap();
        (outline.attribute("stroke").unwrap().to_string(), outline.attribute("fill").unwrap().to_string())
    };
    for (label, stroke, fill) in
        [("x", blue, "white"), ("sin", blue, "white"), ("y", blue, blue), ("cos", red, "white"), ("dx", red, red)]
    {
        assert_eq!(colour(label), (stroke.into(), fill.into()), "{label}");
    }
}

#[test]
fn a_legend_tells_what_the_colours_mean_where_there_are_two() {
    let program = resolved("input x\ny = sin(x)");
    let legend =
        |text: &str| ["the function", "added by the derivative"].map(|entry| text.contains(&format!(">{entry}<")));
    assert_eq!(legend(&svg(&program, None).unwrap()), [false, false]);
    let both = svg(&program, Some(&derived(&program))).unwrap();
    assert_eq!(legend(&both), [true, true]);
    let document = Document::parse(&both).unwrap();
    let root = document.root_element();
    assert!(number(&root, "width") >= 250.0, "{both}");
}

#[test]
fn the_same_program_gives_the_same_picture() {
    let texts = || -> Vec<String> {
        let some = examples().into_iter().step_by(7);
        some.map(|(_, program)| svg(&program, Some(&derived(&program))).unwrap()).collect()
    };
    assert_eq!(texts(), texts());
}

#[test]
fn labels_are_escaped_and_long_ones_are_shortened_with_the_whole_in_the_title() {
    let text = "input x[N]\ny[i in 0..N] = if x[i] < 1 and x[i] <= 2 then x[i] else sum[k in max(0, i - 17)..=i] x[k]";
    let program = resolved(&format!(
        "{text}\nz[i in 0..N] = if i < 12 or i == 17 or i == 19 or i > 23 or i == 21 then x[i] else 0"
    ));
    let svg = svg(&program, None).unwrap();
    assert!(svg.contains("a &lt; b") && !svg.contains("a < b"), "{svg}");
    let document = Document::parse(&svg).unwrap();
    let long =
        elements(&document, "title").into_iter().find(|title| title.text().unwrap().chars().count() > 44).unwrap();
    let shown = elements(&document, "text").into_iter().find(|text| text.text().unwrap().ends_with('…')).unwrap();
    let begin = shown.text().unwrap().trim_end_matches('…');
    assert!(long.text().unwrap().starts_with(begin) && begin.len() > 40, "{begin}");
}

#[test]
fn programs_without_anything_to_compute_are_drawn() {
    for text in ["y = 1", "input x\ny = x"] {
        let svg = svg(&resolved(text), None).unwrap();
        assert!(Document::parse(&svg).is_ok(), "{svg}");
    }
}
