// A goroutine, tied to its thread, that spends its CPU time in known shares: 60 % in main.hot, 40 % in the method
// (*Worker).warm. Protocol as in Burner.java; the argument is the load, 0.5 of a core.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const round = 50000

var sink uint64

type Worker struct{ hot, warm atomic.Int64 }

// CPU time of this thread.
func cpu() int64 { return clock(3) }

// CPU time of the process (2) or of this thread (3).
func clock(number uintptr) int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

//go:noinline
func hot(until int64) {
	for cpu() < until {
		x := uint64(until)
		for i := 0; i < round; i++ {
			x = x*6364136223846793005 + 1442695040888963407
		}
		sink = x
	}
}

//go:noinline
func (worker *Worker) burn(until int64) {
	for cpu() < until {
		x := uint64(until) | 1
		for i := 0; i < round; i++ {
			x = (x ^ (x << 13)) + (x >> 7)
		}
		sink = x
	}
}

func (worker *Worker) work(load float64) {
	runtime.LockOSThread()
	begin, first, random := time.Now(), cpu(), uint64(time.Now().UnixNano())
	for {
		random = random*6364136223846793005 + 1442695040888963407
		before := cpu()
		until := before + 400000 + int64(random>>33)%1400000
		if worker.hot.Load()*40 <= worker.warm.Load()*60 {
			hot(until)
			worker.hot.Add(cpu() - before)
		} else {
			worker.burn(until)
			worker.warm.Add(cpu() - before)
		}
		due := time.Duration(float64(cpu()-first) / load)
		if ahead := due - time.Since(begin); ahead > 5*time.Millisecond {
			time.Sleep(ahead)
		}
	}
}

func main() {
	load, worker := 0.5, &Worker{}
	if len(os.Args) > 1 {
		load, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	go worker.work(load)
	fmt.Printf("ready pid=%d\n", os.Getpid())
	report := func() {
		fmt.Printf("counters hot=%d warm=%d process.ns=%d\n", worker.hot.Load(), worker.warm.Load(), clock(2))
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		report()
	}
	report()
}
