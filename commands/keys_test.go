package commands_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	names "github.com/sledctl/sledctl/illumos/naming"
)

// strangeKeys are the keys of all ledgers and their histories below a
// directory that no package owns.
func strangeKeys(dir string) (strange []string, facts int, err error) {
	seen := map[string]bool{}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil // a program that goes on may remove what it has made
		case err != nil || d.IsDir():
			return err
		case base != "ledger.jsonl" && !(strings.HasPrefix(base, "history-") && strings.HasSuffix(base, ".jsonl")):
			return nil
		}
		data, err := os.ReadFile(name)
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var line struct {
				Facts []struct{ Key string }
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue // a test has broken it
			}
			for _, f := range line.Facts {
				facts++
				if _, known := names.OwnerOfKey(f.Key); !known && f.Key != "members" && !seen[f.Key] {
					seen[f.Key] = true
					strange = append(strange, fmt.Sprintf("%s: %s", base, f.Key))
				}
			}
		}
		return err
	})
	return strange, facts, err
}
