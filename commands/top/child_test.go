package top

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asAChild has a run of this test be what is started.
const asAChild = "SLEDCTL_TEST_TOP_CHILD"

// What is started is in a session of its own, so that it outlives the terminal, and tells
// what it has printed and how it ended.
func TestACommandIsAProcessOfItsOwn(t *testing.T) {
	switch os.Getenv(asAChild) {
	case "fails":
		session, _ := unix.Getsid(0)
		fmt.Println("session", session == os.Getpid())
		fmt.Fprintln(os.Stderr, "it failed")
		os.Exit(3)
	case "dies":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	for _, c := range []struct{ how, prints, ends string }{
		{"fails", "session true\nit failed\n", "exit 3"},
		{"dies", "", "signal: killed"},
	} {
		ended, err := start(append(os.Environ(), asAChild+"="+c.how), []string{"-test.run", t.Name()}, false)
		if err != nil {
			t.Fatal(err)
		}
		if e := <-ended; !strings.Contains(e.Printed, c.prints) || fmt.Sprint(e.Err) != c.ends {
			t.Errorf("%s: printed %q and ended with %v", c.how, e.Printed, e.Err)
		}
	}
}
