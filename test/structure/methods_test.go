package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// No function of the program looks up methods by names that are known only as it runs. With one,
// as text/template has, the linker keeps every exported method: the program is larger by an eighth, and
// each command starts later.
func TestTheProgramLooksUpNoMethodsByName(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the program")
	}
	build := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "sledctl"), "./cmd/sledctl")
	build.Dir = "../.."
	edges, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, edges[:min(len(edges), 1000)])
	}
	some := false
	for edge := range strings.Lines(string(edges)) { // CALLER [<MARK>] -> CALLED [<MARK>], of what is linked
		_, called, ok := strings.Cut(strings.TrimSpace(edge), " -> ")
		if some = some || ok; strings.HasSuffix(called, "<ReflectMethod>") {
			t.Errorf("is linked, and looks up methods by name: %s", edge)
		}
	}
	if !some {
		t.Error("the linker names nothing that it has linked")
	}
}
