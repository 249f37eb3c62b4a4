package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnU2ZzQxg1ZQ5yq5xj0aE6y8xq4m1d2r7c3y1q8w4kz me@example.org\n"

// The beginning of a plan that README.md shows is the one that the program prints, but for the pool.
func TestThePlanOfTheReadmeIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const line = "instance ensure web1 --memory 8G --nic over=net0 --disk image=debian-13,size=20G --ssh-key ~/.ssh/id_ed25519.pub --dry-run"
	_, rest, found := strings.Cut(string(page), "$ sledctl "+line+" | head -12\n")
	shown, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatal("the page does not show it")
	}
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("image import ../image/testdata/disk.xz --name debian-13")
	key := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(key, []byte(anyKey), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(text string) string {
		text = regexp.MustCompile(`oxp_[0-9a-f-]{36}`).ReplaceAllString(text, "POOL")
		return regexp.MustCompile(`propolis_base_[0-9a-f]{8}`).ReplaceAllString(text, "BASE")
	}
	plan := strings.SplitAfter(s.Run(strings.Replace(line, "~/.ssh/id_ed25519.pub", key, 1)), "\n")
	if want := same(strings.Join(plan[:12], "")); same(shown) != want {
		t.Errorf("the page shows\n%sit is\n%s", shown, want)
	}
}
