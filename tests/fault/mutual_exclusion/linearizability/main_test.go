package main

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const histories = 20000 // of each object

// told makes a legal history: operations that take effect one after the other, each somewhere within
// its interval, some of them without an answer, whether they took effect or not.
func told(random *rand.Rand, object string) []operation {
	var all []operation
	var now state
	width := 1 + random.Int63n(25)
	add := func(at int64, o operation) {
		o.Object = object
		o.Call = at - random.Int63n(width)
		end := at + random.Int63n(width)
		if o.What != "end" && !o.open() {
			o.Return = &end
		}
		all = append(all, o)
	}
	step := func(object string, o operation) bool {
		next := stepCounter(now, o)
		if object == "lock" {
			next = stepLock(now, o)
		}
		if len(next) == 0 {
			return false
		}
		now = next[random.Intn(len(next))]
		return true
	}
	count := 4 + random.Intn(8)
	for at := int64(100); len(all) < count; at += 1 + random.Int63n(20) {
		token := uint64(1 + random.Intn(5))
		if object == "lock" {
			o := operation{Object: object, What: "acquire", Token: now.highest + 1}
			if now.value != 0 {
				o = operation{Object: object, What: "end", Token: now.value}
			}
			step(object, o)
			add(at, o)
			continue
		}
		o := operation{Object: object, What: "read", Token: token, Answer: int64(now.value)}
		if random.Intn(2) == 0 {
			o.What, o.Value = "write", int64(now.value)+1
		}
		o.Admitted = token >= now.highest
		if o.Admitted && o.write() {
			o.Answer = o.Value
		}
		if random.Intn(6) != 0 {
			o.Return = new(int64)
		}
		if step(object, o) {
			add(at, o)
		}
	}
	return all
}

// spoil changes one thing, which mostly makes it illegal.
func spoil(random *rand.Rand, all []operation) {
	o := &all[random.Intn(len(all))]
	switch random.Intn(5) {
	case 0:
		o.Answer++
	case 1:
		o.Admitted = !o.Admitted
	case 2:
		o.Token++
	case 3:
		o.Value++
	case 4:
		shift := random.Int63n(120) - 60
		o.Call += shift
		if o.Return != nil {
			*o.Return += shift
		}
	}
}

func legal(object string, cut []piece) bool {
	for _, p := range cut {
		if !porcupine.CheckOperations(model(object, p.begin), p.operations) {
			return false
		}
	}
	return true
}

func TestPiecesOfTightHistoriesAreLegalWhereTheWholeIs(t *testing.T) {
	for _, object := range []string{"counter", "lock"} {
		random := rand.New(rand.NewSource(1))
		verdicts := map[bool]int{}
		cuts := 0
		for seed := 0; seed < histories; seed++ {
			all := told(random, object)
			spoiled := random.Intn(2) == 0
			if spoiled {
				spoil(random, all)
			}
			var whole []porcupine.Operation
			for _, o := range all {
				end := int64(math.MaxInt64)
				if o.Return != nil {
					end = *o.Return
				}
				whole = append(whole, porcupine.Operation{Call: o.Call, Return: end, Output: o})
			}
			expected := legal(object, []piece{{operations: whole}})
			if !expected && !spoiled {
				t.Fatalf("a legal %s is refused: %v", object, all)
			}
			cut := pieces(object, tighten(all), 1)
			if got := legal(object, cut); got != expected {
				t.Fatalf("%s: in pieces %v, as a whole %v: %v", object, got, expected, whole)
			}
			verdicts[expected]++
			cuts += len(cut) - 1
		}
		t.Logf("%s: %d legal, %d not, cut %d times", object, verdicts[true], verdicts[false], cuts)
		if verdicts[true] < histories/4 || verdicts[false] < histories/8 || cuts < histories {
			t.Errorf("%s: too few of a kind: %v, cut %d times", object, verdicts, cuts)
		}
	}
}

// One answer that no order explains, and so many that any order explains: all orders are tried.
func TestAHistoryThatTakesTooLongIsNotDecided(t *testing.T) {
	end := int64(1000)
	var hard []operation
	for i := 0; i < 40; i++ {
		hard = append(hard, operation{Object: "counter", What: "read", Token: 5, Admitted: true, Return: &end})
	}
	hard[39].Answer = 7
	if code := check(key{"counter", 0}, hard, 50*time.Millisecond); code != undecided {
		t.Errorf("ended with %d", code)
	}
	if code := check(key{"counter", 0}, hard[:39], time.Minute); code != 0 {
		t.Errorf("without that answer it ended with %d", code)
	}
}
