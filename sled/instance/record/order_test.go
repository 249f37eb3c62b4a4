package record

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func TestAStartOrderIsANumberOrNone(t *testing.T) {
	for given, want := range map[string]StartOrder{"none": 0, "0": 1, "10": 11, "999": 1000} {
		got, err := ParseStartOrder(given)
		if err != nil || got != want || got.String() != given {
			t.Errorf("%q: %d, %q, %v", given, got, got, err)
		}
	}
	for _, given := range []string{"", "-1", "1000", "+1", "007", "1.0", "1e2", " 1", "None", "first", "99999999999999999999"} {
		_, err := ParseStartOrder(given)
		input, ok := errors.AsType[*InputError](err)
		if !ok || input.Field != "start-order" || input.Value != given || input.Want != "a number from 0 to 999, or none" {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestAStartOrderComesBackFromJSON(t *testing.T) {
	for text, want := range map[string]StartOrder{`"none"`: 0, "0": 1, "999": 1000} {
		var got StartOrder
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s: %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"1000", "-1", `"10"`, `""`, "true", "1.0"} {
		var got StartOrder
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func TestWhatHasNoStartOrderIsLast(t *testing.T) {
	orders := []StartOrder{0, 1000, 11, 1, 0, 2}
	slices.SortFunc(orders, StartOrder.Compare)
	if !slices.Equal(orders, []StartOrder{1, 2, 11, 1000, 0, 0}) {
		t.Error(orders)
	}
}
