// A handler for `handler.exec` in Go: go build handler.go, command: [./handler].
package main

import (
	"encoding/json"
	"os"
)

type request struct {
	Batch []request `json:"batch"`
	ID    string    `json:"record_id"`
	Value *struct{ Amount int64 }
}

func charge(r request) map[string]any {
	if r.Value == nil {
		return map[string]any{"error": "a null value is no payment", "class": "no_payment", "retry": false}
	}
	return map[string]any{"value": map[string]any{"order": r.ID, "cents": r.Value.Amount * 100}}
}

func reply(r request) map[string]any {
	said := charge(r)
	said["record_id"] = r.ID
	return said
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var line request
		if in.Decode(&line) != nil { // the end of the input, too
			return
		}
		said := reply(line)
		if line.Batch != nil {
			replies := make([]any, len(line.Batch))
			for i, r := range line.Batch {
				replies[i] = reply(r)
			}
			said = map[string]any{"batch": replies}
		}
		out.Encode(said)
	}
}
