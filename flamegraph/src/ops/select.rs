//! Some values of a profile, and values multiplied.

use crate::ops::rebuild::Rebuild;
use crate::ops::split::{times, Split};
use crate::profile::{values, Error, Node, Order, Profile, Result, Step, Times, ROOT};

impl Profile {
    /// The index of the value of this name.
    pub fn value_named(&self, name: &str) -> Result<usize> {
        let found = self.values().iter().position(|value| value.name == name);
        found.ok_or_else(|| {
            let there_are = values::list(self.values());
            Error::Usage(format!(
                "no value {name:?} in this profile; there are: {there_are}"
            ))
        })
    }

    /// These values, in this order, and the stacks that have any of them.
    pub fn select(&self, wanted: &[usize]) -> Result<Profile> {
        let Some(times) = self.times().filter(|times| times.has_amounts()) else {
            return self.select_timed(wanted, self.times());
        };
        let amounts_of = times.amounts_of(self);
        let Some(place) = wanted.iter().position(|&value| value == amounts_of) else {
            return self.select_timed(wanted, Some(&times.without_amounts()));
        };
        let mut selected = self.select_timed(wanted, Some(times))?;
        selected.set_amounts_of(place);
        Ok(selected)
    }

    /// The same with times of these values; their rows' nodes are this profile's.
    pub fn select_timed(&self, wanted: &[usize], times: Option<&Times>) -> Result<Profile> {
        for (index, &value) in wanted.iter().enumerate() {
            self.check_value(value)?;
            if wanted[..index].contains(&value) {
                let twice = &self.values()[value];
                return Err(Error::Usage(format!("{twice}: selected twice")));
            }
        }
        if wanted.is_empty() {
            return Err(Error::Usage("no value is selected".to_string()));
        }
        let has = |node: Node| {
            wanted
                .iter()
                .any(|&value| self.selves(value)[node as usize] != 0)
        };
        let types = wanted.iter().map(|&value| self.values()[value].clone());
        let mut copy = Rebuild::with_values(self, types.collect(), times);
        let nodes = self.copy_paths(&mut copy, has)?;
        for (to, &value) in wanted.iter().enumerate() {
            for (&amount, &node) in self.selves(value).iter().zip(&nodes) {
                copy.add(node, to, amount)?;
            }
        }
        for node in (0..self.tree.len() as Node).filter(|&node| has(node)) {
            copy.went(node, nodes[node as usize]);
        }
        Ok(copy.finish())
    }

    /// Every value times a factor; each total is rounded once, and the stacks add up to it exactly.
    pub fn scaled(&self, factor: f64) -> Result<Profile> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Error::Usage(format!("{factor}: a factor is above zero")));
        }
        let mut copy = self.clone();
        let order = Order::of(self);
        for value in 0..self.values().len() {
            let whole = times(self.total(value)?, factor)
                .ok_or_else(|| Error::Overflow(self.values()[value].to_string()))?;
            copy.set_column(value, self.dealt(value, whole, &order)?)?;
        }
        Ok(copy)
    }

    /// One value in proportion such that its total is this; stacks add up to it exactly.
    pub fn with_total(&self, value: usize, total: i64) -> Result<Profile> {
        let now = self.total(value)?;
        if total < 0 || (now == 0 && total > 0) {
            let what = &self.values()[value];
            return Err(Error::Usage(format!(
                "{what}: a total of {now} cannot become {total}"
            )));
        }
        let mut copy = self.clone();
        if now > 0 {
            copy.set_column(value, self.dealt(value, total, &Order::of(self))?)?;
        }
        Ok(copy)
    }

    /// A value's self values in proportion, such that they add up to this total.
    pub(crate) fn dealt(&self, value: usize, whole: i64, order: &Order) -> Result<Vec<i64>> {
        let mut split = Split::new(whole as u128, self.total(value)? as u128);
        let mut column = vec![0; self.tree.len()];
        for step in order.walk() {
            if let Step::Enter(node) = step {
                column[node as usize] = split.next(self.selves(value)[node as usize] as u128);
            }
        }
        Ok(column)
    }

    /// Takes over the nodes on the way to those that are wanted; returns where each went (others: to the root).
    pub(super) fn copy_paths(
        &self,
        copy: &mut Rebuild<'_>,
        wanted: impl Fn(Node) -> bool,
    ) -> Result<Vec<Node>> {
        let needed = self.needed(wanted, |node| self.tree.parent(node));
        let mut nodes = vec![ROOT; self.tree.len()];
        for node in self.tree.nodes().filter(|&node| needed[node as usize]) {
            let parent = nodes[self.tree.parent(node) as usize];
            nodes[node as usize] = copy.child(parent, self.tree.frame(node))?;
        }
        Ok(nodes)
    }
}
