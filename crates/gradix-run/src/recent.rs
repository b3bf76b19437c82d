//! The values that were asked for last, so that they need not be worked out again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The values that were asked for last, by their keys. Nothing is locked while a value is made.
pub struct Recent<K, V> {
    /// The latest first.
    entries: Mutex<Vec<(K, Arc<V>)>>,
    capacity: usize,
}

impl<K, V> Recent<K, V> {
    /// Room for this many values; who comes when it is full takes the place of the one that was not asked for longest.
    pub const fn new(capacity: usize) -> Self {
        Recent { entries: Mutex::new(Vec::new()), capacity }
    }

    /// The value whose key is found, or one that is made now. If several threads make the same one, all get the first.
    pub fn find_or_add<E>(
        &self,
        found: impl Fn(&K) -> bool,
        make: impl FnOnce() -> Result<(K, V), E>,
    ) -> Result<Arc<V>, E> {
        if let Some(value) = self.find(&found) {
            return Ok(value);
        }
        let (key, value) = make()?;
        let mut entries = self.lock();
        if let Some(value) = front(&mut entries, &found) {
            return Ok(value);
        }
        let value = Arc::new(value);
        entries.insert(0, (key, Arc::clone(&value)));
        entries.truncate(self.capacity);
        Ok(value)
    }

    /// The value whose key is found.
    pub fn find(&self, found: impl Fn(&K) -> bool) -> Option<Arc<V>> {
        front(&mut self.lock(), &found)
    }

    /// Forgets all values, and tells how many there were.
    pub fn clear(&self) -> usize {
        std::mem::take(&mut *self.lock()).len()
    }

    /// What is behind the mutex stays whole when a holder panics.
    fn lock(&self) -> MutexGuard<'_, Vec<(K, Arc<V>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds an entry and puts it first.
fn front<K, V>(entries: &mut [(K, Arc<V>)], found: &impl Fn(&K) -> bool) -> Option<Arc<V>> {
    let place = entries.iter().position(|(key, _)| found(key))?;
    entries[..=place].rotate_right(1);
    Some(Arc::clone(&entries[0].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a key, which is ten times as large, and whether it was made now.
    fn ask(recent: &Recent<u32, u32>, key: u32) -> (u32, bool) {
        let mut is_made = false;
        let value = recent.find_or_add(
            |known| *known == key,
            || {
                is_made = true;
                Ok::<_, ()>((key, 10 * key))
            },
        );
        (*value.unwrap(), is_made)
    }

    #[test]
    fn the_one_that_was_not_asked_for_longest_goes() {
        let recent = Recent::new(2);
        assert_eq!((ask(&recent, 1), ask(&recent, 2)), ((10, true), (20, true)));
        assert_eq!((ask(&recent, 1), ask(&recent, 3)), ((10, false), (30, true)));
        assert_eq!((ask(&recent, 1), ask(&recent, 2)), ((10, false), (20, true)));
    }

    #[test]
    fn what_is_forgotten_is_made_again() {
        let recent = Recent::new(2);
        ask(&recent, 1);
        assert_eq!((recent.clear(), recent.clear()), (1, 0));
        assert_eq!(ask(&recent, 1), (10, true));
    }

    #[test]
    fn what_can_not_be_made_is_not_kept() {
        let recent = Recent::<u32, u32>::new(2);
        assert_eq!(recent.find_or_add(|_| true, || Err("no")).unwrap_err(), "no");
        assert_eq!(ask(&recent, 1), (10, true));
    }

    #[test]
    fn threads_that_make_the_same_value_share_it() {
        let recent = Recent::new(2);
        // Nobody is done before both have begun.
        let begun = std::sync::Barrier::new(2);
        let make = || {
            begun.wait();
            Ok::<_, ()>(((), ()))
        };
        let ask = || recent.find_or_add(|()| true, make).unwrap();
        let (first, second) = std::thread::scope(|scope| {
            let other = scope.spawn(ask);
            (ask(), other.join().unwrap())
        });
        assert!(Arc::ptr_eq(&first, &second));
    }
}
