package format

import (
	"fmt"
	"slices"
	"testing"
)

func TestManyKeysAreFoundHoweverTheyCame(t *testing.T) {
	const keys = 3000
	x := made(t)
	want := map[string]string{}
	for n := 0; n < keys; {
		var some []Fact
		for range 1 + n%700 { // layers of all sizes
			some = append(some, fact(fmt.Sprintf("a/%d", n), fmt.Sprint(n)), fact(fmt.Sprintf("bb/%08d", n%50), fmt.Sprint(n)))
			want[fmt.Sprintf("a/%d", n)], want[fmt.Sprintf("bb/%08d", n%50)] = fmt.Sprint(n), fmt.Sprint(n)
			n++
		}
		some = append(some, gone(fmt.Sprintf("a/%d", n/2)))
		delete(want, fmt.Sprintf("a/%d", n/2))
		x = grown(t, x, some...)
		if n%2 == 0 {
			_, err := x.Facts() // else several lines are added at once
			try(t, err)
		}
	}
	facts, err := x.Facts()
	try(t, err)
	for key, value := range want {
		if got, ok := facts.Get(key); !ok || string(got) != value {
			t.Fatalf("%s is %s, %v; want %s", key, got, ok, value)
		}
	}
	if got, ok := facts.Get("a"); ok {
		t.Errorf("a key that nobody set is %s", got)
	}
	var all []string
	for key, value := range facts.All("") {
		if all = append(all, key); want[key] != string(value) {
			t.Fatalf("%s is %s, want %s", key, value, want[key])
		}
	}
	if len(all) != len(want) || !slices.IsSorted(all) {
		t.Errorf("%d keys of %d, sorted: %v", len(all), len(want), slices.IsSorted(all))
	}
}
