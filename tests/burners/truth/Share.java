package truth;

/** One of several pieces of work that have fixed shares of something: of CPU time, of bytes. */
abstract class Share {
    final int percent;
    final Counters.Sum used;

    Share(String counter, int percent) {
        this.used = new Counters.Sum(counter);
        this.percent = percent;
    }

    /** Do some of it. */
    abstract void slice();

    private static Share next(Share[] shares) {
        Share behind = shares[0];
        for (Share share : shares) {
            if (share.used.value() * behind.percent < behind.used.value() * share.percent) behind = share;
        }
        return behind;
    }

    /** Do some of what is furthest behind; how much was done. */
    static long one(Share[] shares) {
        Share share = next(shares);
        long before = share.used.value();
        share.slice();
        return share.used.value() - before;
    }
}
