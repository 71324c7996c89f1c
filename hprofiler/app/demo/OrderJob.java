package com.example.orders;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Timer;
import java.util.TimerTask;

/**
 * A small batch job to be profiled: `OrderJob --role parse` cleans order lines with regular expressions,
 * `OrderJob --role enrich` builds many short-lived strings and maps. Prints `ready` once it is warm.
 * Ends when nobody has the other end of its standard output (its parent is gone), and after ten minutes in any case.
 */
public final class OrderJob {
    private static final long WARM_UP_NANOS = 1_000_000_000L;
    private static final long LIMIT_NANOS = 600L * 1_000_000_000L;
    private static final long WATCH_MILLIS = 500;
    private static final int BATCH = 200;

    public static void main(String[] args) {
        if (args.length != 2 || !args[0].equals("--role")) {
            throw new IllegalArgumentException("usage: OrderJob --role parse|enrich");
        }
        endWithParent();
        run(roleOf(args[1]));
    }

    private static Role roleOf(String name) {
        switch (name) {
            case "parse":
                return new OrderParser();
            case "enrich":
                return new OrderEnricher();
            default:
                throw new IllegalArgumentException("unknown role " + name);
        }
    }

    private static void run(Role role) {
        long start = System.nanoTime();
        boolean ready = false;
        long checksum = 0;
        for (long batch = 0; System.nanoTime() - start < LIMIT_NANOS; batch++) {
            checksum += role.process(OrderLines.batch(batch, BATCH));
            // CPU time, so that a busy machine only makes it later, not less warm.
            if (!ready && ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() > WARM_UP_NANOS) {
                System.out.println("ready");
                ready = true;
            }
        }
        // Printing the sum keeps the compiler from leaving the work out.
        System.out.println("checksum " + checksum);
    }

    /** A timer's thread has nothing to do while it waits; one that reads would be seen to wait for a disk. */
    private static void endWithParent() {
        new Timer("parent-watch", true).schedule(new TimerTask() {
            @Override
            public void run() {
                System.out.println("alive");
                if (System.out.checkError()) {
                    System.exit(0);
                }
            }
        }, WATCH_MILLIS, WATCH_MILLIS);
    }
}

/** One half of the job: works through a batch of order lines and returns a checksum. */
interface Role {
    long process(List<String> lines);
}

/** Makes the same order lines for the same batch number: customer|sku|quantity|price|comment. */
final class OrderLines {
    private static final String[] COMMENTS = {
        "leave at the\tdoor", "gift wrap,\r\nplease", "call  before   delivery", "none", "fragile: glass; keep upright",
    };

    static List<String> batch(long number, int size) {
        Random random = new Random(number);
        List<String> lines = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            lines.add("customer-" + random.nextInt(500) + "|sku-" + random.nextInt(90) + "|" + (1 + random.nextInt(9))
                + "|" + random.nextInt(100) + "." + random.nextInt(100) + "|" + COMMENTS[random.nextInt(COMMENTS.length)]);
        }
        return lines;
    }
}

/** The hot spot is cleanField: it compiles its regular expressions anew for every field. */
final class OrderParser implements Role {
    @Override
    public long process(List<String> lines) {
        long sum = 0;
        for (String line : lines) {
            sum += parseLine(line);
        }
        return sum;
    }

    private long parseLine(String line) {
        long sum = 0;
        for (String field : line.split("\\|")) {
            sum += cleanField(field).length();
        }
        return sum;
    }

    private String cleanField(String field) {
        return field.replaceAll("[\\r\\n\\t]+", " ").replaceAll("\\s{2,}", " ").replaceAll("^(.*[^;,])[;,]*$", "$1");
    }
}

/** The hot spots allocate: describe copies text over and over, countBySku fills maps that nobody keeps. */
final class OrderEnricher implements Role {
    private static final int PASSES = 20;

    @Override
    public long process(List<String> lines) {
        long sum = 0;
        for (int pass = 0; pass < PASSES; pass++) {
            sum += countBySku(lines, pass).size();
            for (String line : lines) {
                sum += describe(line).length();
            }
        }
        return sum;
    }

    private Map<String, Integer> countBySku(List<String> lines, int pass) {
        Map<String, Integer> counts = new HashMap<>();
        for (String line : lines) {
            int first = line.indexOf('|');
            String sku = line.substring(first + 1, line.indexOf('|', first + 1)) + "@" + pass;
            counts.merge(sku, 1, Integer::sum);
        }
        return counts;
    }

    private String describe(String line) {
        StringBuilder text = new StringBuilder();
        for (int copy = 0; copy < 4; copy++) {
            text.append("copy of ").append(line).append("; ");
        }
        return text.reverse().toString();
    }
}
