package ipadm

import (
	"errors"
	"strings"
	"testing"
)

func TestObjects(t *testing.T) {
	for _, good := range []string{"net0/v4", "oxControlInstance0/omicron6", "v_1.0/ll", "a0/" + strings.Repeat("b", 31)} {
		if err := ValidateObject(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "net0", "net0/", "/v4", "net0/v-4", "net0/v_4", "net0/4v", "net0/v4/x", "net/v4", "0net0/v4", "-t0/v4", "net 0/v4",
		"a0/" + strings.Repeat("b", 32), strings.Repeat("a", 31) + "0/v4", "net0/v\n"} {
		err := ValidateObject(bad)
		if _, ok := errors.AsType[*ObjectError](err); !ok {
			t.Errorf("%q: %v, want an *ObjectError", bad, err)
		}
	}
}
