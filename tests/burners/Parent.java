/** Starts the program that its arguments name, which gets its input and output, and waits for it. */
public final class Parent {
    private Parent() {}

    public static void main(String[] command) throws Exception {
        System.exit(new ProcessBuilder(command).inheritIO().start().waitFor());
    }
}
