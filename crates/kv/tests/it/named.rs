//! What went wrong once, each in the shortest history that shows it.

use crate::prompts::{Prompt, Prompts};
use blis_kv::{Judged, Pool, Table, TransferId};

/// Prompts of blocks that are named.
fn prompts<const N: usize>(names: [&[u64]; N]) -> [Prompt; N] {
    let named = Prompts::named(&names.map(<[u64]>::to_vec));
    named.whole.try_into().expect("as many as asked for")
}

fn grown(pool: &mut Pool, blocks: usize) -> Table {
    let mut table = Table::default();
    pool.grow(&mut table, u32::try_from(blocks).expect("short prompts"));
    table
}

/// Computes a prompt that nobody knows, and commits it.
fn computed(pool: &mut Pool, prompt: &Prompt) -> Table {
    let mut table = grown(pool, prompt.len());
    pool.commit(&mut table, prompt.first(prompt.len()));
    table
}

/// Computes a prompt and lets it go.
fn cache(pool: &mut Pool, prompt: &Prompt) {
    let mut table = computed(pool, prompt);
    pool.release(&mut table, |_| 0);
}

/// Claims the first `blocks` of a prompt and lets them go again: that cuts a run.
fn cut(pool: &mut Pool, prompt: &Prompt, blocks: usize) {
    let mut table = pool.claim(pool.lookup(prompt.first(blocks)));
    pool.release(&mut table, |_| 0);
}

fn evict(pool: &mut Pool, blocks: u32) -> u32 {
    let run = pool.first_idle().expect("something idle");
    pool.evict(run, blocks)
}

fn copied(pool: &Pool, prompt: &Prompt) -> u32 {
    pool.lookup(prompt.first(prompt.len())).copied
}

#[test]
fn the_beginning_of_a_run_lands_though_its_end_was_evicted_on_the_way() {
    let [prompt] = prompts([&[1, 2, 3, 4]]);
    let mut pool = Pool::with_tier(8, 8);
    cache(&mut pool, &prompt);
    let departure = pool.start_copy_of_idle(4, TransferId(1)).expect("four blocks");
    cut(&mut pool, &prompt, 2);
    assert_eq!(evict(&mut pool, 2), 2);
    assert_eq!(pool.land(&departure, 1), 2);
    assert_eq!(evict(&mut pool, 2), 2);
    assert_eq!(copied(&pool, &prompt), 2);
    pool.check([].iter());
}

#[test]
fn the_beginning_of_a_run_lands_though_its_end_was_copied_at_once() {
    let [prompt] = prompts([&[1, 2, 3, 4]]);
    let mut pool = Pool::with_tier(8, 8);
    cache(&mut pool, &prompt);
    let departure = pool.start_copy_of_idle(4, TransferId(1)).expect("four blocks");
    let run = pool.first_idle().expect("the run");
    assert_eq!(pool.copy_now(run, 1, 1), (run, 1));
    assert_eq!(pool.land(&departure, 2), 3);
    assert_eq!(pool.copied(), 4);
    pool.check([].iter());
}

#[test]
fn a_trunk_that_lands_with_two_leaves_is_warmer_than_both() {
    let [left, right, other, another, last] = prompts([&[1, 2], &[1, 3], &[7], &[8], &[9]]);
    let mut pool = Pool::with_tier(8, 3);
    cache(&mut pool, &left);
    let hit = pool.lookup(right.first(2));
    let mut table = pool.claim(hit);
    pool.grow(&mut table, 1);
    pool.commit(&mut table, right.first(2));
    pool.release(&mut table, |_| 0);
    let departure = pool.start_copy_of_idle(3, TransferId(1)).expect("two leaves and their trunk");
    assert_eq!(pool.land(&departure, 1), 3);
    while pool.first_idle().is_some() {
        evict(&mut pool, 1);
    }
    for (stranger, left_over) in [(&other, (1, 2)), (&another, (1, 1)), (&last, (0, 0))] {
        let table = computed(&mut pool, stranger);
        assert_eq!(pool.copy_table_now(&table, 2), 1);
        assert_eq!((copied(&pool, &left), copied(&pool, &right)), left_over);
    }
}

#[test]
fn only_the_copies_that_are_read_are_warmed_and_counted() {
    let [prompt, other] = prompts([&[1, 2, 3, 4], &[9]]);
    let mut pool = Pool::with_tier(8, 5);
    let mut table = computed(&mut pool, &prompt);
    assert_eq!(pool.copy_table_now(&table, 5), 4);
    pool.release(&mut table, |_| 0);
    assert_eq!(evict(&mut pool, 4), 4);
    let mut table = computed(&mut pool, &other);
    assert_eq!(pool.copy_table_now(&table, 6), 1);
    pool.release(&mut table, |_| 0);
    assert_eq!(evict(&mut pool, 1), 1);
    assert_eq!(pool.touch(prompt.first(4), 1, 2, 5).recent, 1);
    // Blocks 4, 3 and 1 are the coldest now, then the other prompt, then block 2.
    let [fill] = prompts([&[20, 21, 22]]);
    let table = computed(&mut pool, &fill);
    assert_eq!(pool.copy_table_now(&table, 7), 3);
    assert_eq!((copied(&pool, &prompt), copied(&pool, &other)), (0, 1));
}

#[test]
fn as_much_is_copied_at_once_as_the_tier_holds_from_the_trunk_on() {
    let [prompt] = prompts([&[1, 2, 3, 4, 5]]);
    let mut pool = Pool::with_tier(8, 2);
    cache(&mut pool, &prompt);
    let run = pool.first_idle().expect("the run");
    assert_eq!(pool.copy_now(run, 4, 1).1, 2, "blocks 2 and 3 of 2, 3, 4, 5");
    pool.check([].iter());
    assert_eq!(evict(&mut pool, 4), 2, "those that have no copy");
    assert_eq!(evict(&mut pool, 2), 2);
    let hit = pool.lookup(prompt.first(5));
    assert_eq!((hit.blocks, hit.copied), (1, 2));
}

#[test]
fn copying_a_table_at_once_also_copies_what_is_on_its_way() {
    let [prompt] = prompts([&[1, 2, 3, 4]]);
    let mut pool = Pool::with_tier(8, 8);
    let mut table = grown(&mut pool, 4);
    pool.commit(&mut table, prompt.first(2));
    let departure = pool.start_copy(&table, TransferId(1)).expect("two blocks");
    pool.commit(&mut table, prompt.first(4));
    assert_eq!(pool.copy_table_now(&table, 1), 4);
    pool.release(&mut table, |_| 0);
    while pool.first_idle().is_some() {
        evict(&mut pool, 4);
    }
    assert_eq!(copied(&pool, &prompt), 4, "a request that was swapped out comes back whole");
    assert_eq!(pool.land(&departure, 2), 0);
    pool.check([].iter());
}

#[test]
fn the_leaves_of_a_table_do_not_drive_its_own_trunk_out_of_the_tier() {
    let [prompt] = prompts([&[1, 2, 3, 4, 5]]);
    let mut pool = Pool::with_tier(8, 3);
    let mut table = grown(&mut pool, 5);
    pool.commit(&mut table, prompt.first(2));
    assert_eq!(pool.copy_table_now(&table, 1), 2);
    pool.commit(&mut table, prompt.first(5));
    assert_eq!(pool.copy_table_now(&table, 2), 1, "one more fits");
    pool.release(&mut table, |_| 0);
    while pool.first_idle().is_some() {
        evict(&mut pool, 5);
    }
    assert_eq!(copied(&pool, &prompt), 3);
}

#[test]
fn a_copy_that_is_made_again_is_warm_again() {
    let [first, second, third] = prompts([&[1], &[2], &[3]]);
    let mut pool = Pool::with_tier(4, 2);
    for prompt in [&first, &second, &first, &third] {
        cache(&mut pool, prompt);
        let run = pool.first_idle().expect("the prompt");
        pool.copy_now(run, 1, 1);
        pool.evict(run, 1);
    }
    assert_eq!([&first, &second, &third].map(|prompt| copied(&pool, prompt)), [1, 0, 1]);
}

#[test]
fn what_comes_back_from_the_tier_is_judged_as_if_it_were_new() {
    let [prompt] = prompts([&[1, 2]]);
    let mut pool = Pool::with_tier(4, 4);
    for _ in 0..3 {
        let mut table = computed(&mut pool, &prompt);
        pool.copy_table_now(&table, 1);
        pool.release(&mut table, |run| {
            assert_eq!((run.uses, run.upto, run.worth), (1, 2, 0));
            7
        });
        assert_eq!(evict(&mut pool, 2), 2);
        assert_eq!(copied(&pool, &prompt), 2);
    }
}

#[test]
fn what_lengthens_a_run_that_others_have_used_is_judged_by_itself() {
    let [short, long] = prompts([&[1, 2], &[1, 2, 3]]);
    let mut pool = Pool::new(4);
    for _ in 0..3 {
        let mut table = pool.claim(pool.lookup(short.first(2)));
        let missing = 2 - table.blocks();
        pool.grow(&mut table, missing);
        pool.commit(&mut table, short.first(2));
        pool.release(&mut table, |_| 9);
    }
    let mut table = pool.claim(pool.lookup(long.first(3)));
    pool.grow(&mut table, 1);
    pool.commit(&mut table, long.first(3));
    let judged = std::cell::RefCell::new(Vec::new());
    pool.release(&mut table, |run| {
        judged.borrow_mut().push((run.upto, run.uses, run.worth));
        run.worth
    });
    assert_eq!(judged.into_inner(), [(3, 1, 0), (2, 4, 9)]);
    assert_eq!(evict(&mut pool, 1), 1);
    assert_eq!(pool.lookup(long.first(3)).blocks, 2, "the new block went first");
}

#[test]
fn the_books_tell_when_a_run_is_worth_less_than_what_continues_it() {
    for (worths, orderly) in [([5, 3], true), ([4, 4], true), ([3, 5], false)] {
        let [prompt] = prompts([&[1, 2]]);
        let mut pool = Pool::new(4);
        let mut table = computed(&mut pool, &prompt);
        pool.release_cut(&mut table, |run| {
            let from = run.upto - 1;
            Judged { worth: worths[from as usize], from }
        });
        let checked = std::panic::catch_unwind(|| pool.check_worths());
        assert_eq!(checked.is_ok(), orderly, "{worths:?}");
    }
}
