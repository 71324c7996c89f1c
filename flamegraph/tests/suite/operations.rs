//! Operations as their users meet them: what each keeps, what it drops, and its errors.

use crate::support::{error, samples, text};
use flamegraph::{Keep, Kind, NameRules, Pattern, Profile, ValueType};

const JOB: &str = "main;parse;match_[j] 5\nmain;read 3\nmain 1\nidle;wait 7\n";

#[test]
fn bad_expressions_are_errors() {
    let reason = error(Pattern::new("a("));
    assert!(reason.starts_with("not a regular expression: "), "{reason}");
}

#[test]
fn threads_are_grouped_by_name_without_numbers() {
    let profile = samples(
        "[pool-1-thread-7 tid=71];run 1\n[pool-2-thread-9 tid=82];run 2\n[main tid=1];run 4\n\
         [main tid=1];[main tid=9] 1\n[unknown_Java] 8\n",
    );
    let grouped = profile.by_thread_group(NameRules::builtin()).unwrap();
    assert_eq!(
        text(&grouped),
        "[main];[main tid=9] 1\n[main];run 4\n[pool-N-thread-N];run 3\n[unknown_Java] 8\n"
    );
    let reason = error(samples(JOB).by_thread_group(NameRules::builtin()));
    assert_eq!(reason, "no stack starts with a thread frame [name tid=N]");
    assert!(samples("").by_thread_group(NameRules::builtin()).is_ok());
}

fn two_values() -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    profile.add_stack(&["a", "b"], &[1, 10]).unwrap();
    profile.add_stack(&["a", "c"], &[0, 5]).unwrap();
    profile.add_stack(&["d"], &[2, 0]).unwrap();
    profile
}

#[test]
fn a_value_has_the_total_asked_for_exactly() {
    let profile = samples("a;b 1\na;c 1\na;d 1\n");
    for total in [0, 1, 2, 3, 100, i64::MAX] {
        let scaled = profile.with_total(0, total).unwrap();
        assert_eq!(scaled.total(0).unwrap(), total);
        let sum: i128 = text(&scaled)
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<i128>().unwrap())
            .sum();
        assert_eq!(sum, i128::from(total));
    }
    let mut two = two_values();
    two = two.with_total(1, 30).unwrap();
    assert_eq!((two.total(0).unwrap(), two.total(1).unwrap()), (3, 30));
    assert!(samples("").with_total(0, 0).is_ok());
    let reason = error(samples("").with_total(0, 5));
    assert_eq!(reason, "samples (count): a total of 0 cannot become 5");
    assert!(profile.with_total(0, -1).is_err() && profile.with_total(1, 1).is_err());
}

#[test]
fn values_are_selected_in_the_order_asked_for() {
    let profile = two_values();
    let swapped = profile.select(&[1, 0]).unwrap();
    assert_eq!(swapped.values(), [ValueType::cpu(), ValueType::samples()]);
    assert_eq!(text(&swapped), "a;b 10\na;c 5\n");
    let samples = profile
        .select(&[profile.value_named("samples").unwrap()])
        .unwrap();
    assert_eq!(
        (text(&samples), samples.node_count()),
        ("a;b 1\nd 2\n".to_string(), 3)
    );
    let there_are = "in this profile; there are: samples (count), cpu (nanoseconds)";
    assert_eq!(
        error(profile.value_named("wall")),
        format!("no value \"wall\" {there_are}")
    );
    assert_eq!(
        error(profile.select(&[2])),
        format!("no value 2 {there_are}")
    );
    assert_eq!(
        error(profile.select(&[0, 0])),
        "samples (count): selected twice"
    );
    assert_eq!(error(profile.select(&[])), "no value is selected");
}

#[test]
fn scaling_rounds_totals_once() {
    let profile = samples("a 1\nb 1\nc 1\n");
    assert_eq!(text(&profile.scaled(10.0).unwrap()), "a 10\nb 10\nc 10\n");
    let half = profile.scaled(0.5).unwrap();
    assert_eq!((half.total(0).unwrap(), half.node_count()), (2, 3));
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(error(profile.scaled(factor)).ends_with("a factor is above zero"));
    }
    let reason = error(samples(&format!("a {}", i64::MAX)).scaled(2.0));
    assert_eq!(reason, "samples (count): the sum does not fit in 64 bits");
}

#[test]
fn merged_tiers_remember_what_each_had() {
    let profile = samples("run_[j];mix_[i] 70\nrun_[0];mix_[j] 10\nrun_[j];read 20\n");
    let merged = profile.merged_tiers(0).unwrap();
    assert_eq!(text(&merged), "run_[j];mix_[i] 80\nrun_[j];read 20\n");
    let rows: Vec<_> = merged.nodes(0).unwrap().collect();
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row("run").tiers, [(Kind::Interpreted, 10), (Kind::Jit, 90)]);
    assert_eq!(row("mix").tiers, [(Kind::Jit, 10), (Kind::Inlined, 70)]);
    assert_eq!(row("read").tiers, [(Kind::Plain, 20)]);
    assert_eq!(
        (
            row("mix").depth,
            row("mix").self_value,
            row("run").total_value
        ),
        (2, 80, 100)
    );
    let pruned = merged.pruned(Keep::Frames(1)).unwrap();
    let run = pruned.nodes(0).unwrap().nth(1).unwrap();
    assert_eq!(run.tiers, [(Kind::Interpreted, 10), (Kind::Jit, 90)]);
}

#[test]
fn tiers_of_a_method_count_recursion_once() {
    let profile = samples("f_[0];g;f_[j];f_[j] 3\nf_[j] 2\n");
    let rows: Vec<_> = profile
        .tiers(0)
        .unwrap()
        .iter()
        .map(|tier| {
            (
                tier.name.clone(),
                tier.kind,
                tier.self_value,
                tier.total_value,
            )
        })
        .collect();
    let f = "f".to_string();
    assert_eq!(
        rows,
        [
            (f.clone(), Kind::Interpreted, 0, 3),
            (f, Kind::Jit, 5, 5),
            ("g".to_string(), Kind::Plain, 0, 3)
        ]
    );
}

#[test]
fn pruned_frames_become_a_remainder() {
    let profile = samples("a;b;c 50\na;d;e 3\na;f 2\na 1\ng 40\nh;i 2\nk 1\n");
    let pruned = profile.pruned(Keep::Share(0.1)).unwrap();
    let expected = "(3 smaller frames) 3\na 1\na;(3 smaller frames) 5\na;b;c 50\ng 40\n";
    assert_eq!(text(&pruned), expected);
    assert_eq!(text(&profile.pruned(Keep::Frames(4)).unwrap()), expected);
    let again = pruned.pruned(Keep::Frames(1)).unwrap();
    assert_eq!(
        text(&again),
        "(5 smaller frames) 43\n".replace('5', "4") + "a 1\na;(5 smaller frames) 55\n"
    );
    assert_eq!(
        text(&profile.pruned(Keep::Share(0.0)).unwrap()),
        text(&profile)
    );
}

#[test]
fn names_become_canonical_and_are_remembered() {
    let mut profile = samples("Job$$Lambda$12/0x0000000800c03000.run 1\nJob$$Lambda$13/0x0000000800c04200.run 2\nmain 4\n");
    profile.set_label("host", "h");
    let canonical = profile.canonical(NameRules::builtin()).unwrap();
    assert_eq!(text(&canonical), "Job$$Lambda.run 3\nmain 4\n");
    let remembered: Vec<_> = canonical.raw_names().collect();
    assert_eq!(remembered.len(), 1);
    assert_eq!(remembered[0].0, "Job$$Lambda.run");
    assert_eq!(remembered[0].1.len(), 2);
    let mut merged = canonical.clone();
    merged
        .merge(
            &samples("Job$$Lambda$99.run 1")
                .canonical(NameRules::builtin())
                .unwrap(),
        )
        .unwrap();
    assert_eq!(merged.raw_names().next().unwrap().1.len(), 3);
    assert_eq!(canonical.labels()["host"], "h");
    let kept = canonical
        .including(&[Pattern::new("main").unwrap()])
        .unwrap();
    assert_eq!(
        kept.raw_names().count(),
        1,
        "operations pass on what is remembered"
    );
}

#[test]
fn rules_with_mistakes_say_where() {
    assert_eq!(
        error(NameRules::parse("# c\n[names]\nno arrow\n")),
        "name rules, line 3: a rule is written REGEX => REPLACEMENT"
    );
    assert!(error(NameRules::parse("a => b\n")).starts_with("name rules, line 1: it stands before"));
    assert!(error(NameRules::parse("[names]\n( => x\n")).starts_with("name rules, line 2: regex"));
    let rules = NameRules::parse("[names]\nfoo\\d+ => foo\n").unwrap();
    assert_eq!(rules.canonical("foo12.bar"), "foo.bar");
    assert_eq!(rules.canonical("[foo1 tid=3]"), "[foo1]");
}

/// Names as JVMs and the kernel write them, and what they become.
const NUMBERED: &str = "\
org/apache/spark/rdd/RDD$$Lambda$1234/0x00000008410f3c40.apply => org/apache/spark/rdd/RDD$$Lambda.apply
a/B$$Lambda$12/1896277646.apply => a/B$$Lambda.apply
a/B$$Lambda$88+0x00007f3500007a08/360062456.run => a/B$$Lambda.run
java/lang/invoke/LambdaForm$MH+0x00007f3500007a08/99.invoke => java/lang/invoke/LambdaForm$MH.invoke
Job+0x00007f3500007a08/99.call => Job.call
a/B$$Lambda/0x00007f3c0c0a1238.apply => a/B$$Lambda.apply
a/B$$Lambda+0x00007f3c0c0a1238.apply => a/B$$Lambda.apply
sun/reflect/GeneratedMethodAccessor42.invoke => sun/reflect/GeneratedMethodAccessor.invoke
jdk/internal/reflect/GeneratedConstructorAccessor7.newInstance => jdk/internal/reflect/GeneratedConstructorAccessor.newInstance
com/sun/proxy/$Proxy31.run => com/sun/proxy/$Proxy.run
jdk/proxy2/$Proxy31.run => jdk/proxy/$Proxy.run
java/lang/invoke/LambdaForm$MH/0x0000000801004800.invoke => java/lang/invoke/LambdaForm$MH.invoke
java/lang/invoke/LambdaForm$MH/1418481495.linkToTargetMethod => java/lang/invoke/LambdaForm$MH.linkToTargetMethod
java.lang.invoke.LambdaForm$BMH012.reinvoke => java.lang.invoke.LambdaForm$BMH.reinvoke
a/Hidden+0x00000008011f2c40.call => a/Hidden.call
a/Hidden/0x00000008011f2c40.call => a/Hidden.call
a/Bean$$EnhancerBySpringCGLIB$$1a2b3c4d.get => a/Bean$$EnhancerBySpringCGLIB.get
a/Bean$$SpringCGLIB$$0.get => a/Bean$$SpringCGLIB.get
a/Bean$$SpringCGLIB$$FastClass$$1.invoke => a/Bean$$SpringCGLIB$$FastClass.invoke
a/Bean$$FastClassByGuice$$2175332194.invoke => a/Bean$$FastClassByGuice.invoke
GeneratedClass$GeneratedIteratorForCodegenStage12.processNext => GeneratedClass$GeneratedIteratorForCodegenStage.processNext
a/Bean$ByteBuddy$hC81tX2q.get => a/Bean$ByteBuddy.get
/usr/lib/x86_64-linux-gnu/libz.so.1.2.13 => [libz.so.1.2.13]
/opt/my lib/libz.so (deleted) => [libz.so]
/tmp/libnetty_epoll_x86_644302178826534172087.so => [libnetty_epoll_x86_N.so]
[snappy-1.1.10-0b9c5e0e-8f7a-4c8e-9d55-0a1b2c3d4e5f-libsnappyjava.so] => [snappy-1.1.10-N-libsnappyjava.so]
[libz.so.1.2.13] => [libz.so.1.2.13]
[Executor task launch worker for task 12.0 in stage 3.0 (TID 44) tid=901] => [Executor task launch worker]
[ForkJoinPool-1-worker-3 tid=9] => [ForkJoinPool-N-worker-N]
[main tid=4711] => [main]
";

#[test]
fn every_kind_of_numbered_name_has_a_rule() {
    let rules = NameRules::builtin();
    for line in NUMBERED.lines() {
        let (raw, canonical) = line.split_once(" => ").unwrap();
        assert_eq!(rules.canonical(raw), canonical);
        assert_eq!(rules.canonical(canonical), canonical, "once is enough");
    }
    let unchanged = "java/lang/Thread.run a/B$1.run a/B$$anonfun$12.apply org/springframework/cglib/core/SpringCGLIB.get \
                     org/apache/spark/sql/execution/WholeStageCodegenExec$$anon$1.hasNext Java_sun_nio_ch_0001 \
                     libjvm.so+0x1a2b3c [unknown_Java] java/lang/invoke/LambdaForm$NamedFunction.invoke int[]";
    for name in unchanged.split_whitespace().chain(["[thread 12]"]) {
        assert_eq!(rules.canonical(name), name);
    }
}
