package probe

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/test/refdata"
)

// commandOf is the command that a published sample is the output of: a prompt in its first
// lines, what its name says, or what is known of it; empty: it is no command's.
func commandOf(name string, data []byte) (argv []string, out []byte) {
	prompt := regexp.MustCompile(`(?m)^(?:\S+ ?[#$]|#) ([a-z].*)\n`)
	known := map[string]string{
		"dladm-default-helios-dev.txt":                        "dladm show-link",
		"dladm-show-vnic-illumos.txt":                         "dladm show-vnic",
		"svcs-Za-H-o-state,fmri,zone-helios.txt":              "svcs -Za -H -o state,fmri,zone",
		"svcs-z-early-boot-helios.txt":                        "svcs -z oxz_crucible",
		"svcs-x-maintenance-helios.txt":                       "svcs -x",
		"svcs-x-z-maintenance-helios.txt":                     "svcs -x -z oxz_switch",
		"zfs-get-Hpo-name,property,value,source.UNITTEST.txt": "zfs get -Hpo name,property,value,source all rpool",
		"zfs-list-r-omnios.txt":                               "zfs list -r",
		"zoneadm-list-cp-smartos-8field.txt":                  "zoneadm list -cp",
		"zoneadm-list-cp-solaris11-NOT-ILLUMOS.txt":           "zoneadm list -cp",
		"zonecfg-info-helios-omicron1.txt":                    "zonecfg -z oxz_switch info",
	}
	if line := known[name]; line != "" {
		return strings.Fields(line), data
	}
	if strings.HasPrefix(name, "CMDLINE") || strings.HasPrefix(name, "find_") || name == "INDEX.txt" || name == "README.txt" {
		return nil, nil
	}
	if words, _, found := strings.Cut(name, "__"); found && strings.Contains("dladm ipadm netstat route svcs svcprop zfs zoneadm zpool ndp", strings.SplitN(words, "_", 2)[0]) {
		return strings.Split(words, "_"), data
	}
	_, body, _ := bytes.Cut(data, []byte("\n")) // behind the line that names the source
	if at := prompt.FindSubmatchIndex(body); at != nil {
		out = body[at[1]:]
		if strings.HasPrefix(string(body[at[2]:at[3]]), "zlogin ") { // what follows is another prompt's
			return commandOf("", append([]byte("\n"), out...))
		}
		if next := prompt.FindIndex(out); next != nil {
			out = out[:next[0]]
		}
		return strings.Fields(string(body[at[2]:at[3]])), out
	}
	return nil, nil
}

// What real systems were published to print, read as recordings. Each sample is one, since
// they are of many systems; its sled is laid out from nothing else. The counts are printed,
// and each difference named: `go test -v -run Samples ./sled/probe`.
func TestSamplesAsRecordings(t *testing.T) {
	samples := refdata.Files(t, "samples/illumos/*.txt", "samples/omicron/*.t*")
	count, others, unknown := map[Verdict]int{}, 0, 0
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		argv, out := commandOf(name, samples[name])
		if argv == nil {
			others++
			continue
		}
		if len(argv) == 1 && argv[0] == "dladm" { // that is what it does then
			argv = append(argv, "show-link")
		}
		out = bytes.TrimSuffix(bytes.ReplaceAll(out, []byte("\n...\n"), []byte("\n")), []byte("...\n")) // where a page leaves lines out
		a := Archive{Time: time.Now(), Answers: []Answer{{Argv: argv, Stdout: out}}}
		switch {
		case strings.Contains(name, "helios") || strings.Contains(name, "omicron"):
			a.Answers = append(a.Answers, Answer{Argv: []string{"uname", "-v"}, Stdout: []byte("helios-3.0.26000\n")})
		case strings.Contains(name, "smartos"):
			a.Answers = append(a.Answers, Answer{Argv: []string{"uname", "-v"}, Stdout: []byte("joyent_20261105T000000Z\n")})
		}
		c := compared(t, a)[0]
		count[c.Verdict]++
		if strings.HasPrefix(c.Simulated, "not simulated: ") {
			unknown++
		}
		if c.Verdict != ByteEqual {
			t.Logf("%s: %s, %s\n\trecorded  %s\n\tsimulated %s\n\tguesses %v", name, c.Verdict, c.Where, c.Recorded, c.Simulated, c.Guesses)
		}
	}
	t.Logf("%d byte-equal, %d parse-equal, %d different, of which %d are of commands that are not simulated; %d samples are of no query",
		count[ByteEqual], count[ParseEqual], count[Different], unknown, others)
	if count[ByteEqual] < 27 {
		t.Error("fewer are equal than before")
	}
}
