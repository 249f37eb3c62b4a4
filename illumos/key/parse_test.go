package key

import (
	"errors"
	"strings"
	"testing"
)

const (
	digits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	ones   = "1111111111111111111111111111111111111111111111111111111111111111"
)

func TestParseFile(t *testing.T) {
	got, err := parseFile([]byte("# keys of this sled\n\nsalt " + ones + "\n0 " + ones + "\n7 " + strings.ToUpper(digits)))
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	seven, zero := got[7], got[0]
	if seven.Epoch != 7 || saltOf(seven) != unhex(t, ones) {
		t.Error("not what the file says")
	}
	if [Size]byte(secretOf(seven)) != counting() || [Size]byte(secretOf(zero)) != unhex(t, ones) {
		t.Error("not what the file says")
	}
	if got, err := parseFile([]byte("18446744073709551615 " + digits + "\n")); err != nil || saltOf(got[1<<64-1]) != [Size]byte{} {
		t.Error(err)
	}
}

func TestParseFileRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "",
		"only comments":     "# 1 " + digits + "\n\n",
		"only a salt":       "salt " + digits + "\n",
		"a short secret":    "1 " + digits[2:] + "\n",
		"a long secret":     "1 " + digits + "00\n",
		"no digits":         "1 " + strings.Repeat("x", 64) + "\n",
		"two blanks":        "1  " + digits + "\n",
		"a tab":             "1\t" + digits + "\n",
		"a blank behind":    "1 " + digits + " \n",
		"a carriage return": "1 " + digits + "\r\n",
		"no epoch":          digits + "\n",
		"a signed epoch":    "+1 " + digits + "\n",
		"zeros before it":   "01 " + digits + "\n",
		"beyond 64 bits":    "18446744073709551616 " + digits + "\n",
		"an epoch twice":    "1 " + digits + "\n1 " + ones + "\n",
		"a salt twice":      "salt " + digits + "\nsalt " + digits + "\n1 " + digits + "\n",
		"a late salt":       "1 " + digits + "\nsalt " + digits + "\n",
		"JSON":              `{"1": "` + digits + `"}`,
	} {
		got, err := parseFile([]byte(text))
		if !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), digits[8:16]) {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}

func TestParseWhatCommandsPrint(t *testing.T) {
	for _, good := range []string{digits, digits + "\n"} {
		if got, err := parseSecret([]byte(good)); err != nil || got != counting() {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "\n", digits[1:], digits + "0", digits + "\n\n", " " + digits, digits[:63] + "g\n", digits + "\r\n"} {
		_, err := parseSecret([]byte(bad))
		if !errors.Is(err, ErrSyntax) || strings.Contains(err.Error(), digits[8:16]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got, err := parseLatest([]byte("12\n")); err != nil || got != 12 {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "\n", "-1", "1 ", "1\n2\n", "0x1", "latest"} {
		if got, err := parseLatest([]byte(bad)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %d, %v", bad, got, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("# x\nsalt " + ones + "\n1 " + digits + "\n"))
	f.Add([]byte("1 " + digits + "\n2 " + ones))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseFile(data)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
			return
		}
		for epoch, s := range got {
			if s.Epoch != epoch || s.reveal == nil {
				t.Errorf("epoch %d: %v", epoch, s)
			}
		}
		if len(got) == 0 || len(got) > 1+strings.Count(string(data), "\n") {
			t.Errorf("%d epochs", len(got))
		}
	})
}

func FuzzParseSecret(f *testing.F) {
	f.Add([]byte(digits + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseSecret(data); (err == nil) != (len(strings.TrimSuffix(string(data), "\n")) == 64 && onlyHex(data)) {
			t.Errorf("%q: %v", data, err)
		}
	})
}

func onlyHex(data []byte) bool {
	return strings.Trim(strings.TrimSuffix(string(data), "\n"), "0123456789abcdefABCDEF") == ""
}
