package probe

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/illumos/kstat"
)

// collect notes what is to be replaced.
func (p *pseudonyms) collect(a Archive, names []string) {
	for _, name := range names {
		p.addName(name)
	}
	for _, one := range a.Answers {
		out := string(one.Stdout)
		for _, arg := range one.Argv {
			p.addAddresses(arg)
		}
		p.addAddresses(out)
		p.addAddresses(string(one.Stderr))
		p.addAddresses(one.Failed)
		if read := collectors()[strings.Join(one.Argv[:min(2, len(one.Argv))], " ")]; read != nil {
			read(p, out)
		}
		p.columns(one.Argv, out)
		if one.Argv[0] == "zonecfg" {
			p.configuration(out)
		}
	}
	for name := range p.names {
		symbols := p.nameCharacters(name)
		if p.stays(name) { // what begins as it does keeps that character, to be sorted as it was
			p.words.add(symbols[:1])
			continue
		}
		p.words.add(symbols)
		if !slices.ContainsFunc(symbols, func(s symbol) bool { return s.lo == s.hi }) {
			p.odd.add(symbols) // where it would keep what others keep
		}
	}
	var serials []string
	for s := range p.serial {
		p.serials.add(characters(s, false))
		serials = append(serials, regexp.QuoteMeta(s))
	}
	if len(serials) > 0 {
		p.all = regexp.MustCompile(strings.Join(serials, "|"))
		p.all.Longest()
	}
	for n := range p.number {
		p.numbers.add(characters(n, true))
	}
}

// addName notes each word of a name. Numbers alone are none: there is no telling them from
// others.
func (p *pseudonyms) addName(name string) {
	for _, w := range shape().word.FindAllString(name, -1) {
		if w = strings.TrimRight(w, "."); strings.Trim(w, "0123456789.-_") != "" && !shape().four.MatchString(w) {
			p.names[w] = true
		}
	}
}

func (p *pseudonyms) addAddresses(text string) {
	for _, id := range shape().uuid.FindAllString(text, -1) {
		p.uuids.add(hexDigits(id))
		p.heads[strings.ToLower(id[:8])] = true
		p.seen[id] = true
	}
	for _, t := range tokensOf(text) {
		plain := strings.ReplaceAll(t, `\`, "")
		if symbols, ok := octets(plain); shape().four.MatchString(plain) && ok {
			p.note(&p.four, symbols, plain)
		}
		if !strings.Contains(plain, ":") {
			if parts := shape().disk.FindStringSubmatch(t); parts != nil {
				p.serial[parts[2]] = true
			}
			continue
		}
		a, err := netip.ParseAddr(plain)
		switch {
		case shape().mac.MatchString(plain):
			p.note(&p.macs, macBytes(plain), plain)
		case err == nil && a.Is6():
			p.note(&p.six, groups(a), plain)
		}
	}
}

// note adds an address, and to those that must not be left unless all of it stays.
func (p *pseudonyms) note(t *trie, symbols []symbol, plain string) {
	t.add(symbols)
	for _, s := range symbols {
		if s.lo != s.hi {
			p.seen[plain] = true
		}
	}
}

// columns notes the names in what dladm and ipadm print for programs, by the fields that
// were asked for.
func (p *pseudonyms) columns(argv []string, out string) {
	at := slices.Index(argv, "-o")
	if argv[0] != "dladm" && argv[0] != "ipadm" || at < 0 || at+1 >= len(argv) {
		return
	}
	for i, field := range strings.Split(strings.ToLower(argv[at+1]), ",") {
		switch field {
		case "link", "over", "port", "zone", "addrobj", "ifname":
			p.column(out, i)
		}
	}
}

// column notes the names in one column of output whose fields colons part.
func (p *pseudonyms) column(out string, n int) {
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\:`, "\x00"), ":")
		if n < len(fields) {
			p.addName(fields[n])
		}
	}
}

// collectors read the other outputs in which names stand, by the first two words of a
// command.
func collectors() map[string]func(*pseudonyms, string) {
	return map[string]func(*pseudonyms, string){
		"kstat -p":     (*pseudonyms).counters,
		"zoneadm list": func(p *pseudonyms, out string) { p.column(out, 1); p.column(out, 3) },
		"zpool list":   (*pseudonyms).pools,
		"zpool import": (*pseudonyms).importable,
		"zfs get":      (*pseudonyms).datasets,
		"prtconf -vD":  (*pseudonyms).devices,
		"mount -p":     (*pseudonyms).mounts,
		"svcs -a":      (*pseudonyms).services,
		"svcs -z":      (*pseudonyms).services,
	}
}

// counters notes the names of links and zones.
func (p *pseudonyms) counters(out string) {
	for line := range strings.Lines(out) {
		if c, ok := kstat.ParseCounter(line); ok && (c.Module == "link" || c.Module == "zones") {
			p.addName(c.Name)
		}
	}
}

func (p *pseudonyms) pools(out string) {
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if fields[0] != "" {
			p.addName(fields[0])
		} else if len(fields) > 1 && strings.HasPrefix(fields[1], "/") && !strings.HasPrefix(fields[1], "/dev/") {
			p.addName(fields[1]) // a file
		}
		for _, f := range fields {
			p.addNumber(f)
		}
	}
}

// addNumber notes a GUID: no size has so many digits.
func (p *pseudonyms) addNumber(n string) {
	if len(n) >= 16 && strings.Trim(n, "0123456789") == "" {
		p.number[n] = true
		p.seen[n] = true
	}
}

func (p *pseudonyms) importable(out string) {
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); key {
		case "pool":
			p.addName(value)
		case "id":
			p.addNumber(value)
		}
	}
}

func (p *pseudonyms) datasets(out string) {
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			continue
		}
		p.addName(fields[0])
		switch fields[1] {
		case "guid":
			p.number[fields[2]] = len(fields[2]) > 4
			p.seen[fields[2]] = p.seen[fields[2]] || len(fields[2]) > 4
		case "mountpoint", "origin", "encryptionroot":
			p.addName(fields[2])
		}
	}
}

// devices notes serial numbers. That of a device's id stands behind the last dash or
// underscore.
func (p *pseudonyms) devices(out string) {
	property := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if name, found := strings.CutPrefix(line, "name='"); found {
			property, _, _ = strings.Cut(name, "'")
			continue
		}
		value, found := strings.CutPrefix(line, "value='")
		if value = strings.TrimSuffix(value, "'"); !found {
			continue
		}
		switch property {
		case "inquiry-serial-no", "baseboard-identifier":
			p.addSerial(value)
		case "devid":
			p.addSerial(value[strings.LastIndexAny(value, "-_@")+1:])
		}
	}
}

func (p *pseudonyms) addSerial(s string) {
	if s = strings.TrimSpace(s); len(s) >= 4 {
		p.serial[s] = true
	}
}

func (p *pseudonyms) mounts(out string) {
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 {
			p.addName(fields[0])
			p.addName(fields[2])
		}
	}
}

// services notes the names of services that are the site's own.
func (p *pseudonyms) services(out string) {
	for line := range strings.Lines(out) {
		if _, own, found := strings.Cut(line, "svc:/site/"); found {
			p.addName(strings.TrimSpace(own))
		}
	}
}

// configuration notes the values in what zonecfg prints about a zone.
func (p *pseudonyms) configuration(out string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		setting, exported := strings.CutPrefix(line, "set ")
		separator := "="
		if !exported {
			setting, separator = line, ":"
		}
		key, value, found := strings.Cut(setting, separator)
		if !found || strings.Contains(key, " ") || generic(strings.Trim(key, "[]")) {
			continue
		}
		if value = strings.TrimSpace(value); !strings.HasPrefix(value, "(") { // a limit
			p.addName(strings.Trim(value, `"`))
		}
	}
}

// generic are the settings of a zone whose values are words of the system.
func generic(key string) bool {
	switch key {
	case "brand", "autoboot", "ip-type", "limitpriv", "scheduling-class", "fs-allowed", "type", "options", "ncpus", "cpu-shares",
		"max-lwps", "max-processes", "max-shm-memory", "max-shm-ids", "max-msg-ids", "max-sem-ids", "swap", "locked", "vlan-id", "importance":
		return true
	}
	return false
}
