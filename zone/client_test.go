package zone

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/refdata"
)

func TestListTriesAgainWhenAZoneVanishedMeanwhile(t *testing.T) {
	f := newFake(t, installed("a"), installed("b"))
	f.answer("zoneadm list", answer{stderr: "zoneadm: b: could not get state: No such zone configured\n"})
	zones, err := List(t.Context(), f)
	if err != nil || len(zones) != 3 {
		t.Errorf("%v, %v", zones, err)
	}
}

func TestListTellsWhichZonesAreMissing(t *testing.T) {
	broken := answer{stderr: "zoneadm: bad: could not get zonepath: Invalid document\n"}
	f := newFake(t, installed("a")).answer("zoneadm list", broken, broken, broken)
	zones, err := List(t.Context(), f)
	gap, ok := errors.AsType[*IncompleteError](err)
	if !ok || len(zones) != 2 {
		t.Fatalf("%v, %v", zones, err)
	}
	if !gap.Hides("bad") || gap.Hides("other") {
		t.Errorf("%+v", gap)
	}
}

func TestListIsUnclearWhenItsWordsNameNoZone(t *testing.T) {
	broken := answer{stderr: "zoneadm: could not open /etc/zones/index\n"}
	f := newFake(t).answer("zoneadm list", broken, broken, broken)
	if _, found, err := Find(t.Context(), f, "web1"); err == nil {
		t.Errorf("found %v, no error", found)
	}
}

func TestFindDoesNotMindAnotherZonesBrokenFile(t *testing.T) {
	broken := answer{stderr: "zoneadm: bad: could not get zonepath: Invalid document\n"}
	f := newFake(t).answer("zoneadm list", broken, broken, broken, broken, broken, broken)
	if _, found, err := Find(t.Context(), f, "web1"); found || err != nil {
		t.Errorf("web1: found %v, %v", found, err)
	}
	if _, _, err := Find(t.Context(), f, "bad"); err == nil {
		t.Error("bad: absent, though it is only unreadable")
	}
}

func TestListRefusesToBelieve(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		want   error
	}{
		"a listing without the global zone": {answer{stdout: "3:web1:running:/::sparse:excl\n"}, host.ErrPrivileges},
		"a listing that is cut off":         {answer{stdout: "0:global:running:/::ipkg:shared"}, ErrSyntax},
		"a command that was not found":      {answer{err: host.ErrNoCommand}, host.ErrNoCommand},
	} {
		zones, err := List(t.Context(), newFake(t).answer("zoneadm list", c.answer))
		if !errors.Is(err, c.want) || zones != nil {
			t.Errorf("%s: %v, %v", name, zones, err)
		}
	}
	_, err := List(t.Context(), newFake(t).answer("zoneadm list", answer{exit: 1, stderr: "zoneadm: out of memory\n"}))
	if e, ok := errors.AsType[*host.CommandError](err); !ok || e.Means != nil {
		t.Errorf("a listing that failed: %v", err)
	}
}

func TestGoneNeedsTwoListings(t *testing.T) {
	f := newFake(t)
	f.answer("zoneadm list", answer{}, answer{then: to("web1", Installed)})
	if gone, err := Gone(t.Context(), f, "web1"); gone || err != nil {
		t.Errorf("gone %v, %v, though the second listing shows it", gone, err)
	}
	f = newFake(t).answer("zoneadm list", answer{}, answer{exit: 1})
	if gone, err := Gone(t.Context(), f, "web1"); gone || err == nil {
		t.Error("gone, though the second listing failed")
	}
}

func TestConfigsReadsTheZonesOfTheIndex(t *testing.T) {
	f := newFake(t)
	f.write("/etc/zones/index", "global:installed:/\nweb1:installed:/zone/web1:u\nold:configured:/zone/old:\n")
	f.writeConfig("web1", instance())
	f.writeConfig("old", Config{Brand: "ipkg", Zonepath: "/zone/old", IPType: "shared"})
	f.write("/etc/zones/SUNWblank.xml", `<zone name="blank" zonepath=""/>`)
	got, err := Configs(f.files, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Config{"web1": instance(), "old": {Brand: "ipkg", Zonepath: "/zone/old", IPType: "shared"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Config{}, "Sum")); diff != "" {
		t.Error(diff)
	}
}

func TestConfigsTellsWhichZonesAreUnknown(t *testing.T) {
	f := newFake(t)
	f.write("/etc/zones/index", "web1:installed:/zone/web1:u\nbroken:installed:/zone/broken:v\nlost:configured:/zone/lost:\n")
	f.writeConfig("web1", instance())
	f.write("/etc/zones/broken.xml", "<zone")
	got, err := Configs(f.files, nil)
	if _, ok := got["web1"]; !ok || len(got) != 1 {
		t.Errorf("%v", got)
	}
	unknown := map[string]bool{}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		if c, ok := errors.AsType[*ConfigError](e); ok {
			unknown[c.Zone] = true
		}
	}
	if !unknown["broken"] || !unknown["lost"] || len(unknown) != 2 {
		t.Errorf("unknown are %v", unknown)
	}
}

// Several hundred are read by several at once.
func TestConfigsOfManyZonesAreEachItsOwn(t *testing.T) {
	f, index, names := newFake(t), "global:installed:/\n", []string{}
	for n := range 300 {
		name := fmt.Sprintf("z%03d", n)
		index, names = index+name+":installed:/zone/"+name+":u\n", append(names, name)
		f.writeConfig(name, Config{Brand: "sparse", Zonepath: "/zone/" + name, IPType: "shared"})
	}
	f.write("/etc/zones/index", index)
	f.write("/etc/zones/z100.xml", "<zone")
	wanted := func(name string) bool { return name != "z200" }
	got, err := Configs(f.files, wanted)
	if broken, ok := errors.AsType[*ConfigError](err); !ok || broken.Zone != "z100" || len(got) != 298 {
		t.Fatalf("%d configurations, %v", len(got), err)
	}
	for _, name := range names {
		if c, there := got[name]; there != (name != "z100" && wanted(name)) || there && c.Zonepath != "/zone/"+name {
			t.Errorf("%s: %v, %+v", name, there, c)
		}
	}
}

func TestConfigsWithoutAnIndexIsAnError(t *testing.T) {
	if got, err := Configs(newFake(t).files, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestConfigsDoesNotMissAZoneThatWasDeletedMeanwhile(t *testing.T) {
	f := newFake(t)
	f.write("/etc/zones/index", "web1:installed:/zone/web1:u\ngoing:configured:/zone/going:\n")
	f.writeConfig("web1", instance())
	deleted := false
	f.files.Fail(func(op, name string) error {
		if op == "open" && name == "/etc/zones/going.xml" && !deleted {
			deleted = true
			f.files.Fail(nil)
			f.write("/etc/zones/index", "web1:installed:/zone/web1:u\n")
			return fs.ErrNotExist
		}
		return nil
	})
	if got, err := Configs(f.files, nil); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadConfigRefusesTheFileOfAnotherZone(t *testing.T) {
	f := newFake(t)
	f.writeConfig("web1", instance())
	if err := f.files.Rename("/etc/zones/web1.xml", "/etc/zones/web2.xml"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(f.files, "web2"); !errors.Is(err, ErrSyntax) {
		t.Error(err)
	}
}

func TestErrorsAreTypedByTheirText(t *testing.T) {
	c := cloneCommand("web1", "base")
	for text, want := range map[string]error{
		"zoneadm: web1: No such zone configured":                                                                                              host.ErrNotFound,
		"zoneadm: base: No such zone configured":                                                                                              host.ErrNotFound,
		"web1: No such zone configured\nweb1: No such zone configured":                                                                        host.ErrNotFound,
		"zoneadm: web1: could not get state: No such zone configured":                                                                         host.ErrNotFound,
		"zoneadm: zone 'web1': is already installed.":                                                                                         host.ErrExists,
		"Zone web1 already installed; create not allowed.":                                                                                    host.ErrExists,
		"Zone exists, input not from terminal and -F not specified:\ncreate command ignored, exiting.":                                        host.ErrExists,
		"zoneadm: zone 'web1': must be installed before boot.":                                                                                host.ErrState,
		"zoneadm: zone 'web1': zone is incomplete; uninstall required.":                                                                       host.ErrState,
		"zoneadm: zone 'web1': uninstall operation is invalid for running zones.":                                                             host.ErrState,
		"zoneadm: zone 'web1': uninstall operation is invalid for shutting_down zones.":                                                       host.ErrTransient,
		"zoneadm: zone 'web1': uninstall operation is invalid for down zones.":                                                                host.ErrTransient,
		"zone 'web1': halt operation is invalid for zones in state 'incomplete'":                                                              host.ErrState,
		"zone 'web1': zone is already booted":                                                                                                 host.ErrState,
		"zoneadm: zone 'web1': is already in state 'configured'.":                                                                             host.ErrState,
		"zoneadm: zone base is configured; installed is required.":                                                                            host.ErrState,
		"zoneadm: Zones 'base' and 'web1' have different brand types.":                                                                        host.ErrRefused,
		"web1: Zone state is invalid for the requested operation":                                                                             host.ErrState,
		"zoneadm: zone 'web1': These file systems are mounted on subdirectories of /zone/web1.":                                               host.ErrBusy,
		"/zone is not owned by root.\ncould not verify zonepath /zone/web1 because of the above errors.\nzoneadm: zone web1 failed to verify": host.ErrRefused,
		"zoneadm: zone 'web1': only a privileged user may clone a zone.":                                                                      host.ErrPrivileges,
		"zonecfg can only be run from the global zone.":                                                                                       host.ErrPrivileges,
		"zone 'web1': WARNING: unable to add network interface 'v0': link busy\nzone 'web1': failed to add network device: No such file or directory\nzoneadm: zone 'web1': call to zoneadmd failed": errLinkBusy,

		// Other zones, other words, words inside other words: no kind.
		"zoneadm: zone 'web2': is already installed.":                           nil,
		"zone 'web1': destroying snapshot: No such zone configured":             nil,
		"ERROR: is already installed.":                                          nil,
		"zoneadm: zone 'web1': call to zoneadmd failed":                         nil,
		"zoneadm: zone 'web1': must be installed before boot. Or not.":          nil,
		"zone 'web2': WARNING: unable to add network interface 'v0': link busy": nil,
		"": nil,
	} {
		err := failure(c, host.Result{Exit: 1, Stderr: []byte(text + "\n")}, "web1", "base")
		if e, ok := errors.AsType[*host.CommandError](err); !ok || e.Means != want {
			t.Errorf("%q: kind %v, want %v", text, e.Means, want)
		}
	}
}

func TestABootFailureOfARealSystemHasNoKind(t *testing.T) {
	const name = "9c0e03ca-a7c1-4dc9-a4f4-ac3766f584c3"
	for _, sample := range refdata.Files(t, "samples/illumos/zoneadm-boot-failure-*.stderr.txt") {
		err := failure(bootCommand(name), host.Result{Exit: 1, Stderr: sample}, name)
		if e, _ := errors.AsType[*host.CommandError](err); e.Means != nil {
			t.Errorf("kind %v: %v", e.Means, err)
		}
	}
}
