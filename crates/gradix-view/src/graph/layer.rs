//! In which layer each node stands, counted from the top: an operand is below all of its users.
//!
//! The sum of the lengths of all edges is kept small. Starting from the lowest layers possible, sets of nodes that hold
//! each other are moved up or down as long as that makes more edges shorter than longer. This is what the network simplex
//! method of Gansner et al., "A technique for drawing directed graphs" (1993), does with one set at a time; stopping early
//! costs length only.

/// How often all nodes are tried.
const ROUNDS: usize = 8;

/// The layer of every node, given the operands of each, which come before it. No layer is empty.
///
/// Post-condition: `layers[operand] > layers[node]`.
pub fn layers(operands: &[Vec<usize>]) -> Vec<usize> {
    let mut users = vec![Vec::new(); operands.len()];
    let mut heights = vec![0; operands.len()];
    for (node, below) in operands.iter().enumerate() {
        below.iter().for_each(|&operand| users[operand].push(node));
        heights[node] = below.iter().map(|&operand| heights[operand] + 1).max().unwrap_or(0_isize);
    }
    for _ in 0..ROUNDS {
        // Depths grow the other way: moving down in heights is moving up in them.
        let lifted = lift(&mut heights, &users, operands);
        let mut depths: Vec<isize> = heights.iter().map(|height| -height).collect();
        let sunk = lift(&mut depths, operands, &users);
        heights = depths.iter().map(|depth| -depth).collect();
        if !lifted && !sunk {
            break;
        }
    }
    from_the_top(&heights)
}

/// Moves every node up that gains from it, together with what it would run into; tells whether there was one.
fn lift(heights: &mut [isize], above: &[Vec<usize>], below: &[Vec<usize>]) -> bool {
    let mut moved = false;
    // For which node each one was found last.
    let mut found = vec![usize::MAX; heights.len()];
    for node in (0..heights.len()).rev() {
        let set = pushed(node, heights, above, &mut found);
        let gain: isize = set.iter().map(|&one| above[one].len() as isize - below[one].len() as isize).sum();
        if gain <= 0 {
            continue;
        }
        let gaps = set.iter().flat_map(|&one| above[one].iter().map(move |&other| (one, other)));
        let gaps = gaps.map(|(one, other)| heights[other] - heights[one] - 1).filter(|gap| *gap > 0);
        let Some(step) = gaps.min() else { continue };
        set.iter().for_each(|&one| heights[one] += step);
        moved = true;
    }
    moved
}

/// A node and all that has to move if it moves up.
fn pushed(node: usize, heights: &[isize], above: &[Vec<usize>], found: &mut [usize]) -> Vec<usize> {
    let mut set = vec![node];
    let mut next = 0;
    while let Some(&one) = set.get(next) {
        next += 1;
        let touched = above[one].iter().filter(|&&other| heights[other] == heights[one] + 1);
        set.extend(touched.filter(|&&other| std::mem::replace(&mut found[other], node) != node));
    }
    set
}

fn from_the_top(heights: &[isize]) -> Vec<usize> {
    let mut rows: Vec<isize> = heights.to_vec();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    rows.dedup();
    heights.iter().map(|height| rows.partition_point(|row| row > height)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(operands: &[Vec<usize>]) -> usize {
        let layers = layers(operands);
        let edges = operands.iter().enumerate().flat_map(|(node, below)| below.iter().map(move |&one| (node, one)));
        edges.map(|(node, one)| layers[one].checked_sub(layers[node]).filter(|gap| *gap > 0).unwrap()).sum()
    }

    #[test]
    fn a_chain_has_a_layer_for_each_node() {
        assert_eq!(layers(&[vec![], vec![0], vec![1]]), [2, 1, 0]);
        assert_eq!(layers(&[]), [0; 0]);
    }

    #[test]
    fn an_operand_stands_just_below_its_lowest_user() {
        // 3 = f(2), 2 = g(1), 1 = h(0), and 4 is an operand of 5 = k(3, 4).
        assert_eq!(layers(&[vec![], vec![0], vec![1], vec![2], vec![], vec![3, 4]]), [4, 3, 2, 1, 1, 0]);
    }

    #[test]
    fn nodes_that_hold_each_other_move_together() {
        // 0 ← 1 ← 2 ← 3 is a long chain; 4 ← 5 is read by 3 twice, once through 6, which also reads 7.
        let operands = [vec![], vec![0], vec![1], vec![2, 5, 6], vec![], vec![4], vec![5, 7], vec![]];
        assert_eq!(length(&operands), 9);
    }

    #[test]
    fn users_of_deep_nodes_stand_near_them() {
        // A long chain and a second result that reads its beginning.
        let mut operands = vec![vec![]];
        (1..50).for_each(|node| operands.push(vec![node - 1]));
        operands.push(vec![0]);
        assert_eq!(layers(&operands)[50], 48);
    }
}
