//! Idle lists of several worths against one list in order.

use crate::prompts::Prompts;
use blis_core::random::mix;
use blis_kv::{Pool, Table};

/// Prompts of one block each.
const PROMPTS: u64 = 40;

#[test]
fn the_least_worth_goes_first_and_of_equals_the_one_released_first() {
    let names: Vec<Vec<u64>> = (0..PROMPTS).map(|name| vec![name]).collect();
    let prompts = Prompts::named(&names).whole;
    let mut evictions = 0;
    for seed in 0..50 {
        let mut pool = Pool::new(20);
        // Worth and prompt, in the order in which they go.
        let mut listed: Vec<(u64, usize)> = Vec::new();
        for at in 0..400 {
            let draw = |what: u64| mix(mix(seed, at), what);
            let which = usize::try_from(draw(0) % PROMPTS).expect("small");
            let prompt = &prompts[which];
            let hit = pool.lookup(prompt.first(1));
            assert_eq!(hit.blocks > 0, listed.iter().any(|&(_, idle)| idle == which));
            let mut table = pool.claim(hit);
            listed.retain(|&(_, idle)| idle != which);
            while pool.shortfall(1 - hit.blocks) > 0 {
                let first = pool.first_idle().expect("a full pool has idle runs");
                assert_eq!(pool.evict(first, 1), 1);
                let (_, gone) = listed.remove(0);
                assert_eq!(pool.lookup(prompts[gone].first(1)).blocks, 0, "it was {gone}'s turn");
                evictions += 1;
            }
            pool.grow(&mut table, 1 - hit.blocks);
            pool.commit(&mut table, prompt.first(1));
            let worth = [0, 0, 1, 5, u64::MAX][usize::try_from(draw(1) % 5).expect("small")];
            pool.release(&mut table, |_| worth);
            let place = listed.partition_point(|&(other, _)| other <= worth);
            listed.insert(place, (worth, which));
            pool.check([].iter());
        }
    }
    assert!(evictions >= 5_000, "{evictions} evictions");
}

/// The worths contradict the tree in every way: any run may be worth less than what continues it.
#[test]
fn nothing_goes_while_something_resident_continues_it_whatever_it_is_worth() {
    let prompts = Prompts::families().whole;
    let mut passed_over = 0;
    for seed in 0..200 {
        let mut pool = Pool::new(60);
        let mut tables: Vec<Table> = Vec::new();
        for prompt in &prompts {
            let hit = pool.lookup(prompt.first(prompt.len()));
            let mut table = pool.claim(hit);
            pool.grow(&mut table, prompt.first(prompt.len()).len() - hit.blocks);
            pool.commit(&mut table, prompt.first(prompt.len()));
            tables.push(table);
        }
        // Deep runs are worth the more, the deeper; others anything.
        for (at, table) in tables.iter_mut().enumerate() {
            pool.release(table, |run| match seed % 2 {
                0 => run.upto.into(),
                _ => mix(seed, mix(at as u64, run.upto.into())) % 6,
            });
        }
        while let Some(first) = pool.first_idle() {
            let found = |pool: &Pool| -> Vec<u32> {
                let find = |prompt: &crate::prompts::Prompt| pool.lookup(prompt.first(10)).blocks;
                prompts.iter().map(find).collect()
            };
            let before = found(&pool);
            assert_eq!(pool.evict(first, 1), 1);
            // A block that is continued would take more than itself from what a prompt finds.
            let lost = before.iter().zip(found(&pool)).map(|(&before, after)| before - after);
            assert!(lost.max() == Some(1), "{before:?}");
            pool.check([].iter());
            passed_over += 1;
        }
        assert_eq!((pool.free(), pool.runs()), (60, 0), "all of it can go");
    }
    assert!(passed_over >= 5_000, "{passed_over} evictions");
}
