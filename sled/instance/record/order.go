package record

import (
	"cmp"
	"fmt"
	"strconv"
)

// StartOrder says when an instance is brought up among others: the lowest number first, those
// without a number last. Its value is the number plus 1, so that the zero value is no number.
type StartOrder int

// MaxStartOrder is the highest number.
const MaxStartOrder = 999

// noStartOrder is how none is written.
const noStartOrder = "none"

// String is the number, or none.
func (o StartOrder) String() string {
	if o == 0 {
		return noStartOrder
	}
	return strconv.Itoa(int(o) - 1)
}

// Compare sorts by when instances are brought up: those without a number last.
func (o StartOrder) Compare(other StartOrder) int {
	if o == 0 || other == 0 {
		return cmp.Compare(other, o)
	}
	return cmp.Compare(o, other)
}

// ParseStartOrder reads a number or none.
func ParseStartOrder(s string) (StartOrder, error) {
	if s == noStartOrder {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > MaxStartOrder || strconv.Itoa(n) != s {
		return 0, &InputError{Field: "start-order", Value: s, Want: fmt.Sprintf("a number from 0 to %d, or none", MaxStartOrder)}
	}
	return StartOrder(n + 1), nil
}

// MarshalJSON is a number, or "none".
func (o StartOrder) MarshalJSON() ([]byte, error) {
	if o == 0 {
		return []byte(`"` + noStartOrder + `"`), nil
	}
	return []byte(o.String()), nil
}

// UnmarshalJSON reads either.
func (o *StartOrder) UnmarshalJSON(data []byte) (err error) {
	switch text := string(data); text {
	case "null":
	case `"` + noStartOrder + `"`:
		*o = 0
	default:
		*o, err = ParseStartOrder(text)
	}
	return err
}
