package record

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A listing reads every record, and encoding/json takes five times as
// long for one as looking for what it must hold. So a record is first read as
// this program writes it: compact, with the keys that are known here, nothing
// escaped. Whatever else there is, encoding/json reads.

// Decode reads a record from its JSON.
func Decode(value []byte) (Record, error) {
	c := cursor{json: string(value)}
	if r := c.record(); c.done() {
		return r, nil
	}
	var r Record
	err := json.Unmarshal(value, &r)
	return r, err
}

func (c *cursor) record() (r Record) {
	c.object(func(key string) {
		switch key {
		case "id":
			r.ID = c.text()
		case "name":
			r.Name = c.text()
		case "wanted":
			r.Wanted = c.text()
		case "spec":
			r.Spec = c.spec()
		case "control":
			r.Control = c.text()
		case "secrets":
			r.Secrets = c.text()
		case "later_disks":
			later := list(c, c.disk)
			r.Later = &later
		case "protected":
			r.Protected = c.truth()
		case "generation":
			r.Generation = c.number()
		case "updated":
			c.expect(r.Updated.UnmarshalText([]byte(c.text())) == nil)
		case "began":
			c.expect(r.Began.UnmarshalText([]byte(c.text())) == nil)
		case "run":
			incarnation := c.incarnation()
			r.Incarnation = &incarnation
		case "leaving":
			r.Leaving = list(c, c.incarnation)
		case "vmm":
			vmm := c.vmm()
			r.VMM = &vmm
		case "keeper":
			r.Keeper = Keeper(c.text())
		case "keeper_generation":
			r.KeeperGeneration = c.number()
		case "ending":
			ending := c.ending()
			r.Ending = &ending
		case "came":
			r.Came = c.text()
		default:
			c.expect(false)
		}
	})
	return r
}

func (c *cursor) vmm() (v VMM) {
	c.object(func(key string) {
		switch key {
		case "propolis_id":
			v.PropolisID = c.text()
		case "boot":
			v.Boot = c.text()
		case "silo_id":
			v.SiloID = c.text()
		case "project_id":
			v.ProjectID = c.text()
		case "migration":
			m := c.migration()
			v.Migration = &m
		default:
			c.expect(false)
		}
	})
	return v
}

func (c *cursor) migration() (m Migration) {
	c.object(func(key string) {
		switch key {
		case "id":
			m.ID = c.text()
		case "source":
			m.Source = c.text()
		default:
			c.expect(false)
		}
	})
	return m
}

func (c *cursor) ending() (e Ending) {
	c.object(func(key string) {
		switch key {
		case "propolis_id":
			e.PropolisID = c.text()
		case "state":
			e.State = c.text()
		case "reason":
			e.Reason = c.text()
		default:
			c.expect(false)
		}
	})
	return e
}

func (c *cursor) spec() (s Spec) {
	c.object(func(key string) {
		switch key {
		case "cpus":
			s.CPUs = c.small()
		case "memory":
			s.Memory = c.number()
		case "disks":
			s.Disks = list(c, c.disk)
		case "nics":
			s.NICs = list(c, c.nic)
		case "address":
			c.expect(s.Address.UnmarshalText([]byte(c.text())) == nil)
		case "pool":
			s.Pool = c.text()
		case "cpu_cap":
			c.expect(s.CPUCap.UnmarshalJSON([]byte(c.decimal())) == nil)
		case "cloud_init":
			cloudInit := c.cloudInit()
			s.CloudInit = &cloudInit
		case "start_order":
			c.expect(s.StartOrder.UnmarshalJSON([]byte(strconv.Itoa(c.small()))) == nil)
		default:
			c.expect(false)
		}
	})
	return s
}

func (c *cursor) cloudInit() (i CloudInit) {
	c.object(func(key string) {
		switch key {
		case "hostname":
			i.Hostname = c.text()
		case "ssh_keys":
			i.SSHKeys = list(c, c.text)
		case "user_data":
			i.UserData = c.text()
		case "network_config":
			i.NetworkConfig = c.text()
		case "volume":
			i.Volume = c.text()
		default:
			c.expect(false)
		}
	})
	return i
}

func (c *cursor) disk() (d Disk) {
	c.object(func(key string) {
		switch key {
		case "path":
			d.Path = c.text()
		case "readonly":
			d.ReadOnly = c.truth()
		default:
			c.expect(false)
		}
	})
	return d
}

func (c *cursor) nic() (n NIC) {
	c.object(func(key string) {
		switch key {
		case "over":
			n.Over = c.text()
		case "mac":
			n.MAC = c.text()
		case "vlan":
			n.VLAN = c.small()
		case "max_bw":
			n.MaxBW = c.small()
		case "allow_ip":
			n.AllowIP = list(c, c.text)
		default:
			c.expect(false)
		}
	})
	return n
}

func (c *cursor) incarnation() (r Incarnation) {
	c.object(func(key string) {
		switch key {
		case "propolis_id":
			r.PropolisID = c.text()
		case "zone":
			r.Zone = c.text()
		case "zonepath":
			r.Zonepath = c.text()
		case "dataset":
			r.Dataset = c.text()
		case "base":
			r.Base = c.text()
		case "base_dataset":
			r.BaseDataset = c.text()
		case "brand":
			r.Brand = c.text()
		case "control":
			r.Control = c.vnic()
		case "guests":
			r.Guests = list(c, c.vnic)
		case "boot":
			r.Boot = c.text()
		case "ensured":
			r.Ensured = c.truth()
		case "foreign":
			r.Foreign = c.truth()
		case "object":
			r.Object = c.text()
		case "service":
			r.Service = c.text()
		case "migration":
			r.Migration = c.text()
		case "clean":
			r.Clean = c.text()
		default:
			c.expect(false)
		}
	})
	return r
}

func (c *cursor) vnic() (v VNIC) {
	c.object(func(key string) {
		switch key {
		case "name":
			v.Name = c.text()
		case "over":
			v.Over = c.text()
		case "mac":
			v.MAC = c.text()
		case "vlan":
			v.VLAN = c.small()
		default:
			c.expect(false)
		}
	})
	return v
}

// cursor reads compact JSON from at on. Once something is not as expected it
// has failed, and finds nothing more.
type cursor struct {
	json   string
	at     int
	failed bool
}

// done reports whether everything was as expected, to the end.
func (c *cursor) done() bool { return !c.failed && c.at == len(c.json) }

func (c *cursor) expect(ok bool) {
	if !ok {
		c.failed, c.at = true, len(c.json)
	}
}

// next takes what comes next, if it is that.
func (c *cursor) next(what string) bool {
	if !strings.HasPrefix(c.json[c.at:], what) {
		return false
	}
	c.at += len(what)
	return true
}

// object calls member for each key, to read the value.
func (c *cursor) object(member func(key string)) {
	c.expect(c.next("{"))
	if c.next("}") {
		return
	}
	for more := true; more && !c.failed; more = c.next(",") {
		key := c.text()
		c.expect(c.next(":"))
		member(key)
	}
	c.expect(c.next("}"))
}

// list reads an array, nil for null.
func list[T any](c *cursor, one func() T) []T {
	if c.next("null") {
		return nil
	}
	c.expect(c.next("["))
	items := []T{}
	if c.next("]") {
		return items
	}
	for more := true; more && !c.failed; more = c.next(",") {
		items = append(items, one())
	}
	c.expect(c.next("]"))
	return items
}

// text reads a string in which nothing is escaped.
func (c *cursor) text() string {
	c.expect(c.next(`"`))
	rest := c.json[c.at:]
	n := 0
	for n < len(rest) && rest[n] != '"' && rest[n] != '\\' && rest[n] >= ' ' && rest[n] <= '~' {
		n++
	}
	c.at += n
	c.expect(c.next(`"`))
	return rest[:n]
}

// number reads one without sign, fraction and exponent.
func (c *cursor) number() uint64 {
	from := c.at
	for c.at < len(c.json) && c.json[c.at] >= '0' && c.json[c.at] <= '9' {
		c.at++
	}
	digits := c.json[from:c.at]
	n, err := strconv.ParseUint(digits, 10, 64)
	c.expect(err == nil && (len(digits) == 1 || digits[0] != '0'))
	return n
}

// decimal is a number that may have a fraction.
func (c *cursor) decimal() string {
	from := c.at
	c.number()
	if c.next(".") {
		c.expect(c.at < len(c.json) && c.json[c.at] >= '0' && c.json[c.at] <= '9')
		for c.at < len(c.json) && c.json[c.at] >= '0' && c.json[c.at] <= '9' {
			c.at++
		}
	}
	return c.json[from:c.at]
}

// small reads a number that fits any int.
func (c *cursor) small() int {
	n := c.number()
	c.expect(n < 1<<31)
	return int(n)
}

func (c *cursor) truth() bool {
	if c.next("true") {
		return true
	}
	c.expect(c.next("false"))
	return false
}
