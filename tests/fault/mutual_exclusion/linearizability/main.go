// linearizability [-patience 1m] FILE: whether the history of a run (../history.h) can be told as if each operation
// had taken effect at one instant between its call and its return. Porcupine searches for such an order;
// the model says what each operation does to the state, and which answer it may have. One line for
// each name and object; ends with 1 where there is no such order, with 2 where the file says nothing,
// and with 4 where the search for one took longer than -patience: nothing is known then.
//
// The counter, as the resource keeps it for holders with fencing tokens. State: its value, and the
// highest token that was admitted.
//
//	read, admitted    the token is not below the highest, and becomes it; the answer is the value
//	write, admitted   the same, and what is written is the value + 1: no increment is lost
//	either, refused   the token is below the highest; nothing changes; the answer is the value
//	either, open      (its worker was killed) one of the above, or it never arrived
//
// Refused are thus: a read that misses an increment which was over before it began; two holders with
// one token that both raise the same value; an increment that is admitted after a higher token was;
// one that is refused though no higher token had been there.
//
// The lock, as its callers see it. State: the token of the lease that stands, if any, and the highest
// token that a lease had.
//
//	acquire           no lease stands, and the token is above the highest; called when it was
//	                  asked for, returned when its holder first saw the lease valid
//	end               the lease stands, and stands no more; not before the holder began to give
//	                  it back, saw it lost, or the last end of its validity that it had seen; no
//	                  later instant is known to anybody, and so it has no return
//
// Refused are thus two leases that stand at once, and tokens against the order of the leases. Not in
// the model, since no answer would be wrong: an acquire that finds the name contended or no quorum
// (another may stand in its way that got no lease itself, or whose worker was killed before it could
// write down that it had one), and a lease that nobody lived to write down (it can only have kept
// others out).
//
// A long run is checked in pieces, which is the same: see tighten and pieces, and main_test.go, which
// compares.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	never     = math.MaxInt64
	pieceSize = 250 // operations, and then up to the next instant at which none is under way
)

const (
	illegal   = 1
	unread    = 2
	undecided = 4
)

type operation struct {
	Object   string
	Name     int
	What     string
	Token    uint64
	Value    int64
	Admitted bool
	Answer   int64
	Call     int64
	Return   *int64
}

func (o operation) open() bool  { return o.Object == "counter" && o.Return == nil }
func (o operation) write() bool { return o.What == "write" }

func (o operation) String() string {
	text := fmt.Sprintf("%s token %d", o.What, o.Token)
	if o.write() {
		text += fmt.Sprintf(" value %d", o.Value)
	}
	switch {
	case o.open():
		text += ": no answer"
	case o.Object == "counter" && o.Admitted:
		text += fmt.Sprintf(": admitted, %d", o.Answer)
	case o.Object == "counter":
		text += fmt.Sprintf(": refused, %d", o.Answer)
	}
	return text
}

// state is that of either object: value counts increments, or is the token of the lease that stands.
type state struct {
	value   uint64
	highest uint64
}

func stepCounter(before state, o operation) []state {
	below := o.Token < before.highest
	fits := !o.write() || uint64(o.Value) == before.value+1
	after := state{before.value, o.Token}
	if o.write() {
		after.value = uint64(o.Value)
	}
	answered := uint64(o.Answer) == after.value
	switch {
	case o.open() && (below || !fits):
		return []state{before}
	case o.open():
		return []state{before, after}
	case o.Admitted && !below && fits && answered:
		return []state{after}
	case !o.Admitted && below && uint64(o.Answer) == before.value:
		return []state{before}
	}
	return nil
}

func stepLock(before state, o operation) []state {
	switch {
	case o.What == "acquire" && before.value == 0 && o.Token > before.highest:
		return []state{{o.Token, o.Token}}
	case o.What == "end" && before.value == o.Token:
		return []state{{0, before.highest}}
	}
	return nil
}

func model(object string, begin state) porcupine.Model {
	step := stepCounter
	if object == "lock" {
		step = stepLock
	}
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{begin} },
		Step: func(before, _, output interface{}) []interface{} {
			var after []interface{}
			for _, s := range step(before.(state), output.(operation)) {
				after = append(after, s)
			}
			return after
		},
	}
	return nondeterministic.ToModel()
}

// tighten leaves out of each interval what no legal order can use, so that an operation without a
// return, or an acquire that waited, does not overlap all that comes later.
//
// Counter: an open request that took effect did so before any request with a higher token that was
// admitted, and so before the first of those returned; one that took none fits anywhere. One that
// was called after that took none.
// Lock: since tokens rise, a lease ends before one with a higher token is acquired, and so before the
// first of those returns; and an acquire takes effect after the end of every lease with a lower one.
func tighten(all []operation) []porcupine.Operation {
	byToken := append([]operation(nil), all...)
	sort.SliceStable(byToken, func(a, b int) bool { return byToken[a].Token < byToken[b].Token })

	// The first return of those with a higher token that bind, by token.
	firstAbove := map[uint64]int64{}
	for i, first := len(byToken)-1, int64(never); i >= 0; {
		token, next := byToken[i].Token, first
		firstAbove[token] = first
		for ; i >= 0 && byToken[i].Token == token; i-- {
			o := byToken[i]
			binds := o.Return != nil && (o.What == "acquire" || o.Admitted)
			if binds && *o.Return < next {
				next = *o.Return
			}
		}
		first = next
	}

	var tight []porcupine.Operation
	lastEnd, endOfLower, token := int64(math.MinInt64), int64(math.MinInt64), uint64(0)
	for _, o := range byToken {
		if o.Token != token {
			token, endOfLower = o.Token, lastEnd
		}
		call, end := o.Call, int64(never)
		if o.Return != nil {
			end = *o.Return
		} else {
			end = firstAbove[o.Token]
		}
		switch {
		case o.What == "acquire" && call < endOfLower:
			call = endOfLower
			if call > end {
				call = end
			}
		case o.What == "end":
			if end < call {
				end = call
			}
			if lastEnd < call {
				lastEnd = call
			}
		case o.open() && end < call:
			continue
		}
		tight = append(tight, porcupine.Operation{Call: call, Return: end, Output: o})
	}
	sort.SliceStable(tight, func(a, b int) bool { return tight[a].Call < tight[b].Call })
	return tight
}

type piece struct {
	begin      state
	operations []porcupine.Operation
}

// pieces cuts a history where nothing is under way. There all that was called before has taken
// effect, and if that was legal, the state is known: the counter has the highest value that was
// answered and the highest token that was admitted (an open request is under way until one above it
// was answered); the lease with the highest token stands (its end is under way until the next one).
func pieces(object string, all []porcupine.Operation, size int) []piece {
	var cut []piece
	var now state
	current := piece{}
	last := int64(math.MinInt64) // return of those in the current piece
	for _, o := range all {
		if len(current.operations) >= size && o.Call > last {
			cut = append(cut, current)
			current = piece{begin: now}
		}
		current.operations = append(current.operations, o)
		if o.Return > last {
			last = o.Return
		}
		now = after(object, now, o.Output.(operation))
	}
	return append(cut, current)
}

func after(object string, now state, o operation) state {
	switch {
	case object == "lock" && o.What == "acquire" && o.Token > now.highest:
		return state{o.Token, o.Token}
	case object == "counter" && !o.open() && o.Admitted:
		if uint64(o.Answer) > now.value {
			now.value = uint64(o.Answer)
		}
		if o.Token > now.highest {
			now.highest = o.Token
		}
	}
	return now
}

type key struct {
	object string
	name   int
}

func read(path string) (map[key][]operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories := map[key][]operation{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		var o operation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		known := o.Object == "counter" && (o.What == "read" || o.What == "write") ||
			o.Object == "lock" && (o.What == "acquire" && o.Return != nil || o.What == "end")
		if !known || o.Token == 0 || o.Return != nil && *o.Return < o.Call {
			return nil, fmt.Errorf("%s:%d: no operation: %s", path, number, lines.Text())
		}
		of := key{o.Object, o.Name}
		histories[of] = append(histories[of], o)
	}
	return histories, lines.Err()
}

// show prints a piece without a legal order, by the calls.
func show(p piece) {
	const atMost = 60
	fmt.Printf("  from value %d, highest token %d:\n", p.begin.value, p.begin.highest)
	for i, o := range p.operations {
		if i == atMost {
			fmt.Printf("  and %d more\n", len(p.operations)-atMost)
			break
		}
		end := "-"
		if o.Return != never {
			end = fmt.Sprint(o.Return)
		}
		fmt.Printf("  [%d, %s] %v\n", o.Call, end, o.Output.(operation))
	}
}

// check returns the exit code. Each piece may take as long as patience.
func check(of key, history []operation, patience time.Duration) int {
	open := 0
	for _, o := range history {
		if o.open() {
			open++
		}
	}
	cut := pieces(of.object, tighten(history), pieceSize)
	verdict := func(text string) {
		fmt.Printf("%s %d: %s (%d operations, %d of them open, in %d pieces)\n", of.object, of.name,
			text, len(history), open, len(cut))
	}
	for _, p := range cut {
		switch porcupine.CheckOperationsTimeout(model(of.object, p.begin), p.operations, patience) {
		case porcupine.Illegal:
			verdict("NOT linearizable")
			show(p)
			return illegal
		case porcupine.Unknown:
			verdict(fmt.Sprintf("not decided within %v for %d operations; once more with -patience %v",
				patience, len(p.operations), 10*patience))
			return undecided
		}
	}
	verdict("linearizable")
	return 0
}

func main() {
	patience := flag.Duration("patience", time.Minute, "for each piece of a history")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "linearizability [-patience 1m] FILE: the history of a run is expected")
		os.Exit(unread)
	}
	histories, err := read(flag.Arg(0))
	if err == nil && len(histories) == 0 {
		err = fmt.Errorf("%s: an empty history shows nothing", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "linearizability:", err)
		os.Exit(unread)
	}
	var order []key
	for of := range histories {
		order = append(order, of)
	}
	sort.Slice(order, func(a, b int) bool {
		return order[a].object < order[b].object ||
			order[a].object == order[b].object && order[a].name < order[b].name
	})
	worst := 0
	for _, of := range order {
		if code := check(of, histories[of], *patience); worst == 0 || code == illegal {
			worst = code
		}
	}
	os.Exit(worst)
}
