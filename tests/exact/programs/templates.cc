// Names that have to be demangled: templates, operators, lambdas, an anonymous namespace.
#include <ctime>
#include <map>
#include <string>

static volatile long sink;

namespace {
template <class T> __attribute__((noinline)) long hot(T x, std::map<std::string, T> &m) {
    for (int i = 0; i < 3000; i++) { sink += i * (long)x; m["a"] += 1; }
    return sink;
}
}  // namespace

namespace ns {
struct V {
    int n = 1;
    __attribute__((noinline)) static long op(const std::string &a, long (*f)(int)) {
        for (int i = 0; i < 100000; i++) sink += f(i) + (long)a.size();
        return sink;
    }
    __attribute__((noinline)) bool operator<(const V &o) const {
        for (int i = 0; i < 100000; i++) sink += i * n * o.n;
        return sink > 1;
    }
};
}  // namespace ns

int main() {
    std::map<std::string, double> m;
    ns::V v;
    for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;) {
        sink += hot(2.0, m) + ns::V::op("x", [](int i) -> long { return i * 2; }) + (v < v);
    }
}
