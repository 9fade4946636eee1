// Acquire + release of a fresh name with redsync over go-redis, N in flight: one JSON line like that
// of `fencepost bench locks --json`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// cycles locks and unlocks fresh names until `end`; returns what each cycle took, in ms.
func cycles(locks *redsync.Redsync, prefix string, end time.Time, errors *atomic.Int64) []float64 {
	ctx := context.Background()
	var took []float64
	for next := 0; ; next++ {
		begun := time.Now()
		if begun.After(end) {
			return took
		}
		mutex := locks.NewMutex(fmt.Sprintf("%s-%d", prefix, next),
			redsync.WithExpiry(10*time.Second), redsync.WithTries(1))
		if err := mutex.LockContext(ctx); err != nil {
			errors.Add(1)
			continue
		}
		if ok, err := mutex.UnlockContext(ctx); !ok || err != nil {
			errors.Add(1)
			continue
		}
		took = append(took, float64(time.Since(begun).Microseconds())/1000)
	}
}

func main() {
	nodes := flag.String("redis", "", "HOST:PORT,…")
	inFlight := flag.Int("in-flight", 256, "locks at a time")
	seconds := flag.Float64("seconds", 5, "how long")
	flag.Parse()
	if *nodes == "" {
		fmt.Fprintln(os.Stderr, "redsync-bench: --redis HOST:PORT,… is missing")
		os.Exit(2)
	}
	var pools []redis.Pool
	for _, node := range strings.Split(*nodes, ",") {
		options := &goredislib.Options{Addr: node, PoolSize: *inFlight + 8}
		pools = append(pools, goredis.NewPool(goredislib.NewClient(options)))
	}
	locks := redsync.New(pools...)
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	var errors atomic.Int64
	var wait sync.WaitGroup
	results := make([][]float64, *inFlight)
	for i := range results {
		wait.Add(1)
		go func() {
			defer wait.Done()
			prefix := fmt.Sprintf("fencepost:{redsync}:%016x-%d", start.UnixNano(), i)
			results[i] = cycles(locks, prefix, end, &errors)
		}()
	}
	wait.Wait()
	elapsed := time.Since(start).Seconds()
	var all []float64
	for _, took := range results {
		all = append(all, took...)
	}
	sort.Float64s(all)
	at := func(q float64) float64 {
		if len(all) == 0 {
			return 0
		}
		return all[int(q*float64(len(all)-1))]
	}
	fmt.Printf("{\"cycles_per_s\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"errors\":%d}\n",
		float64(len(all))/elapsed, at(0.5), at(0.99), errors.Load())
}
