package world

import (
	"path"
	"strings"
)

// ZoneRoot is the directory of a zone's root as the global zone names it, "/"
// for the global zone itself. A zone that is not configured has none.
func (tx *Tx) ZoneRoot(zone string) string {
	if zone == GlobalZone {
		return "/"
	}
	z := tx.FindZone(zone)
	if z == nil {
		return ""
	}
	return z.Root()
}

// Root is the directory of the zone's root.
func (z *Zone) Root() string { return z.Path() + "/root" }

// Path is the zonepath that counts: the one that a kernel zone was made with.
func (z *Zone) Path() string {
	if z.Kernel != nil {
		return z.Kernel.Config.Zonepath
	}
	return z.Config.Zonepath
}

// ZonePathOf is where a path inside a zone lies, as the global zone names it:
// below the zone's root, unless a loopback mount of a zone that the kernel
// knows shows another place there. The last mount wins.
func (tx *Tx) ZonePathOf(zone, name string) string {
	at, _ := tx.zonePath(zone, name)
	return at
}

// ReadOnlyIn says whether a path inside a zone lies on a mount that the zone
// cannot write to.
func (tx *Tx) ReadOnlyIn(zone, name string) bool {
	_, readOnly := tx.zonePath(zone, name)
	return readOnly
}

func (tx *Tx) zonePath(zone, name string) (string, bool) {
	name = path.Clean("/" + name)
	root := tx.ZoneRoot(zone)
	if z := tx.FindZone(zone); z != nil && z.Kernel != nil {
		loops := z.Kernel.Loops
		for i := len(loops) - 1; i >= 0; i-- {
			if Below(loops[i].Dir, name) {
				return path.Join(loops[i].Special, strings.TrimPrefix(name, loops[i].Dir)), loops[i].ReadOnly
			}
		}
	}
	return path.Join("/", root, name), false
}

// Below says whether name is dir or lies in it.
func Below(dir, name string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}
