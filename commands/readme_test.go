package commands_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// The plan that README.md shows is the one that the program prints, but for the pool.
func TestThePlanOfTheReadmeIsCurrent(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const line = "instance ensure web1 --cpus 4 --memory 8G --nic over=net0 --dry-run"
	_, rest, found := strings.Cut(string(page), "$ sledctl "+line+"\n")
	shown, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatal("the page does not show it")
	}
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	same := func(text string) string {
		text = regexp.MustCompile(`oxp_[0-9a-f-]{36}`).ReplaceAllString(text, "POOL")
		return regexp.MustCompile(`propolis_base_[0-9a-f]{8}`).ReplaceAllString(text, "BASE")
	}
	if want := same(s.Run(line)); same(shown) != want {
		t.Errorf("the page shows\n%sit is\n%s", shown, want)
	}
}
