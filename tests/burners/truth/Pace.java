package truth;

/** Keeps work to a rate. What was missed is missed: catching up would make the rate unsteady. */
final class Pace {
    private static final long LEAST_SLEEP_NANOS = 2_000_000;
    private static final long MOST_BEHIND_NANOS = 20_000_000;

    private long due = System.nanoTime();

    /** Sleep until work that should take so long has had its time. */
    void took(long nanos) {
        long now = System.nanoTime();
        due = Math.max(due + nanos, now - MOST_BEHIND_NANOS);
        if (due - now > LEAST_SLEEP_NANOS) Truth.sleep(due - now);
    }
}
