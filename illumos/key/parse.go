package key

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSyntax is a key file, or what a key command printed, that is not as it must
// be. Its message never shows what it is about: that may be a secret.
var ErrSyntax = errors.New("not as a key source must be")

// secrets are those of a key file, by epoch.
type secrets map[uint64]Secret

// parseFile reads a key file. Each line is "EPOCH SECRET": a decimal number and
// 64 hexadecimal digits, one blank between them. A line "salt SALT", in the same
// form, may stand before them; without one the salt is zeros. Empty lines and
// those that begin with '#' are skipped. An epoch that stands twice, and a file
// without any, is an error.
func parseFile(data []byte) (secrets, error) {
	all := secrets{}
	var salt [Size]byte
	salted := false
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		bad := func(why string) error { return fmt.Errorf("line %d: %s: %w", i+1, why, ErrSyntax) }
		word, rest, two := strings.Cut(line, " ")
		value, ok := parseHex(rest)
		switch {
		case !two || !ok:
			return nil, bad("no word and 64 hexadecimal digits behind one blank")
		case word == "salt" && (salted || len(all) > 0):
			return nil, bad("a salt that is not the first")
		case word == "salt":
			salt, salted = value, true
			continue
		}
		epoch, err := parseEpoch(word)
		if err != nil {
			return nil, bad("the epoch is no number")
		}
		if _, twice := all[epoch]; twice {
			return nil, bad(fmt.Sprintf("epoch %d stands there twice", epoch))
		}
		all[epoch] = newSecret(epoch, value, salt)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no epoch: %w", ErrSyntax)
	}
	return all, nil
}

// parseSecret reads what a key command prints for an epoch: 64 hexadecimal
// digits, with or without a line break behind them.
func parseSecret(out []byte) ([Size]byte, error) {
	text := strings.TrimSuffix(string(out), "\n")
	secret, ok := parseHex(text)
	if !ok {
		return secret, fmt.Errorf("%d characters, not %d hexadecimal digits: %w", len(text), 2*Size, ErrSyntax)
	}
	return secret, nil
}

// parseLatest reads what a key command prints for the newest epoch.
func parseLatest(out []byte) (uint64, error) {
	return parseEpoch(strings.TrimSuffix(string(out), "\n"))
}

// parseEpoch reads a decimal number as it is printed: without a sign or zeros
// before it.
func parseEpoch(text string) (uint64, error) {
	epoch, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(epoch, 10) != text {
		return 0, fmt.Errorf("the epoch is no number: %w", ErrSyntax)
	}
	return epoch, nil
}

func parseHex(text string) (value [Size]byte, ok bool) {
	if len(text) != 2*Size {
		return value, false
	}
	_, err := hex.Decode(value[:], []byte(text))
	return value, err == nil
}
