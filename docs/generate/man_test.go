package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// mandoc is the formatter of illumos: it knows what mdoc(7) forbids.
func TestMandocHasNothingToSayAboutTheManualPages(t *testing.T) {
	program, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("needs mandoc (Debian: the package mandoc), which checks manual pages")
	}
	dir := t.TempDir()
	if err := manuals(dir, time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.8"))
	if err != nil || len(pages) < 80 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	if out, err := exec.Command(program, append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAManualPage(t *testing.T) {
	cmd := &cobra.Command{
		Use: "grow [NAME ...] [flags]", Short: `Grow \ instances`, Example: "  grow --by 2\n    .profile", Aliases: []string{"g"},
		Long: "First sentence, e.g. this. Second one (really?) and\nmore.\n\n  a column  of text\n\n.Sh is no macro",
		Run:  func(*cobra.Command, []string) {},
	}
	cmd.Flags().IntP("by", "b", 0, "`N` more. No less")
	root := &cobra.Command{Use: "sledctl"}
	root.AddCommand(cmd)
	want := strings.TrimPrefix(`
.Dd March 4, 2026
.Dt SLEDCTL-GROW 8
.Os
.Sh NAME
.Nm sledctl-grow
.Nd Grow \e instances
.Sh SYNOPSIS
.Nm sledctl grow
.Op Ar "\&NAME ..."
.Op Ar "\&flags"
.Sh DESCRIPTION
First sentence, e.g.\& this.
Second one (really?)
and more.
.Bd -literal -offset indent
a column  of text
.Ed
.Pp
\&.Sh is no macro
.Pp
Also called g.
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl "\&b" , Fl Fl "\&by" Ar "\&N"
N more.
No less
.El
.Sh EXIT STATUS
See
.Xr sledctl-exit-codes 8 .
.Sh EXAMPLES
.Bd -literal -offset indent
grow \-\-by 2
  .profile
.Ed
.Sh SEE ALSO
.Xr sledctl 8 ,
.Xr sledctl-exit-codes 8
`, "\n")
	if diff := cmp.Diff(want, string(manualPage(cmd, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)))); diff != "" {
		t.Error(diff)
	}
}
