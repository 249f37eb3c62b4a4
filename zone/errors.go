package zone

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// What zoneadm and zonecfg say, and what it means. A text is believed only as a
// whole line and only if it names the zone that was asked about: brand hooks
// and zoneadmd print the same words about other things. Anything else has no
// kind. The refusals are those of sanity_check and of the verification in
// usr/src/cmd/zoneadm/zoneadm.c, of usr/src/cmd/zonecfg/zonecfg.c, and of
// zonecfg_strerror in libzonecfg; all are made before anything is changed.

// rule gives a kind to a text, which is a whole line without the program's and
// the zone's name.
type rule struct {
	text *regexp.Regexp
	kind error
}

// rules is a function and not a variable: compiling costs a failed command
// some microseconds, and every start of the program nothing.
//
// Guess zone-error-texts: the texts that give an error its kind are those of the sources under
// LC_ALL=C. An unknown text has no kind, and is shown as it is.
// Check: the errors of `zoneadm` for a zone that is absent, running, busy; compare with
// zone/errors.go
func rules() []rule {
	is := func(pattern string, kind error) rule {
		return rule{text: regexp.MustCompile(`^(?:` + pattern + `)$`), kind: kind}
	}
	return []rule{
		is(`(could not get state: )?No such zone configured`, host.ErrNotFound),
		is(`is already installed\.`, host.ErrExists),
		is(`already installed; create not allowed\.`, host.ErrExists),
		is(`[a-z]+ operation is invalid for (shutting_down|down) zones\.`, host.ErrTransient),
		is(`[a-z]+ operation is invalid for zones in state '(shutting_down|down)'`, host.ErrTransient),
		is(`[a-z]+ operation is invalid for [a-z]+ zones\.`, host.ErrState),
		is(`[a-z]+ operation is invalid for zones in state '[a-z]+'`, host.ErrState),
		is(`zone is already booted`, host.ErrState),
		is(`is already in state 'configured'\.`, host.ErrState),
		is(`must be installed before [a-z]+\.`, host.ErrState),
		is(`zone is incomplete; uninstall required\.`, host.ErrState),
		is(`Zone state is invalid for the requested operation`, host.ErrState),
		is(`not running`, host.ErrState),
		is(`These file systems are mounted on subdirectories of .*\.`, host.ErrBusy),
		is(`WARNING: unable to add network interface '[^']*': link busy`, errLinkBusy),
		is(`another zoneadm may have an operation in progress\.`, host.ErrBusy),
		is(`failed to verify`, host.ErrRefused),
		is(`Bogus zone name`, host.ErrRefused),
		is(`[a-z]+ operation is invalid for the global zone\.`, host.ErrRefused),
		is(`[a-z]+ operation is invalid for zones starting with SUNW\.`, host.ErrRefused),
		is(`only a privileged user may [a-z]+ a zone\.`, host.ErrPrivileges),
		is(`must be in the global zone to [a-z]+ a zone\.`, host.ErrPrivileges),
		is(`User .* is not authorized to [a-z]+ this zone\.`, host.ErrPrivileges),
	}
}

// errLinkBusy is the kind of a boot that did not get a link because somebody has it
// open (configure_one_interface in usr/src/cmd/zoneadmd/vplat.c).
var errLinkBusy = fmt.Errorf("link: %w", host.ErrBusy)

// lines that name no zone, or name it in a way of their own.
func kindOfLine(line string, names []string) error {
	switch line {
	case "zonecfg can only be run from the global zone.":
		return host.ErrPrivileges
	case "Zone exists, input not from terminal and -F not specified:":
		return host.ErrExists
	}
	if len(names) == 2 {
		target, source := names[0], names[1]
		if line == fmt.Sprintf("zoneadm: Zones '%s' and '%s' have different brand types.", source, target) {
			return host.ErrRefused
		}
		installed, found := strings.CutPrefix(line, "zoneadm: zone "+source+" is ")
		if found && strings.HasSuffix(installed, "; installed is required.") {
			return host.ErrState
		}
	}
	text, found := about(line, names)
	if !found {
		return nil
	}
	for _, r := range rules() {
		if r.text.MatchString(text) {
			return r.kind
		}
	}
	return nil
}

// about cuts a line down to what it says about one of the zones: the templates of
// zerror and zperror2 in zoneadm.c, of zerror in libzonecfg, which relays
// zoneadmd, and of zone_perror in zonecfg.c.
func about(line string, names []string) (string, bool) {
	for _, name := range names {
		for _, prefix := range []string{
			"zoneadm: zone '" + name + "': ",
			"zone '" + name + "': ",
			"zoneadm: " + name + ": ",
			"zoneadm: zone " + name + " ",
			name + ": ",
			"Zone " + name + " ",
		} {
			if text, found := strings.CutPrefix(line, prefix); found {
				return text, true
			}
		}
	}
	return "", false
}

// failure is the error of a command that ended badly: names are the zones that
// it was about, the one it was to change first.
func failure(c host.Command, r host.Result, names ...string) error {
	e := &host.CommandError{Command: c, Result: r}
	for line := range strings.Lines(string(r.Stderr)) {
		if kind := kindOfLine(strings.TrimRight(line, "\n"), names); kind != nil {
			e.Means = kind
			break
		}
	}
	return e
}

// untouched says whether a command was refused outright: a known refusal is
// all that it said. A brand's hook that fails may repeat a refusal, of a command
// of its own, but never alone.
func untouched(err error) bool {
	e, ok := errors.AsType[*host.CommandError](err)
	return ok && e.Means != nil && strings.Count(strings.TrimSpace(string(e.Result.Stderr)), "\n") == 0
}
