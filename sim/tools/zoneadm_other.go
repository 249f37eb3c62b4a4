package tools

import (
	"path"

	"github.com/sledctl/sledctl/sim/world"
)

// This file has mark, attach, detach, move and sysboot.

// mark sets the state of the index. What is used wrongly gets no message.
func (z *zoneadm) mark(args []string) Reply {
	options, operands := getopt(args, "F", nil)
	if len(operands) != 1 || len(options) > 0 && options[0].Bad != "" {
		return z.reply(2)
	}
	state := operands[0]
	switch state {
	case world.ZoneIncomplete:
	case world.ZoneConfigured, world.ZoneInstalled:
		if len(options) == 0 {
			return z.reply(2)
		}
	default:
		return z.reply(2)
	}
	if !z.sane(zoneCheck{command: "mark", exclusive: true}) || !z.brandVerify("mark") {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) Reply {
		if !z.setState(state) {
			return z.reply(25) // Z_UPDATING_INDEX
		}
		return z.reply(0)
	})
}

// detach takes a zone off the sled; its files stay. With -n it only shows what
// another sled would need to attach it.
func (z *zoneadm) detach(args []string) Reply {
	dry := len(args) > 0 && args[0] == "-n"
	switch {
	case !z.named:
		return z.refuse("no zone specified")
	case dry && z.name == world.GlobalZone:
		return z.refuse("detach operation is invalid for the global zone.")
	case dry:
		z.out.Write(world.ZoneXML(z.name, z.zone.Config))
		return z.reply(0)
	}
	if !z.sane(zoneCheck{command: "detach", exclusive: true}) || !z.verify("detach") {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) Reply {
		if z.brand.detach != nil {
			h := z.hook()
			if z.took(h, z.brand.detach(h, args)) != hookOK {
				return z.reply(1)
			}
		}
		zonepath := z.zone.Config.Zonepath
		if mounts := z.mountsBelow(zonepath); z.brand.detach == nil && len(mounts) > 0 {
			z.errf("These file systems are mounted on subdirectories of %s.", zonepath)
			z.listMounts(mounts)
			return z.reply(1)
		}
		if writeFile(z.tx.Files, zonepath+"/SUNWdetached.xml", world.ZoneXML(z.name, z.zone.Config), 0o644) != nil {
			z.errf("zoneadm: saving the detach manifest failed: Problem saving file")
			return z.reply(1)
		}
		if !z.setState(world.ZoneConfigured) {
			return z.reply(1)
		}
		return z.reply(0)
	})
}

// attach makes a configured zone with a root an installed one. With -F its
// brand is not asked.
func (z *zoneadm) attach(args []string) Reply {
	force, update := false, false
	var pass []string
	for _, a := range args {
		switch a {
		case "-?":
			z.printSubUsage("attach")
			return z.reply(0)
		case "-F":
			force = true
		case "-U": // attach also what is incomplete
			update = true
			pass = append(pass, "-u")
		case "-n":
			// Guess: manifests of other sleds are not simulated.
			return z.refuse("%s is not an XML file", args[len(args)-1])
		default:
			pass = append(pass, a)
		}
	}
	if !z.sane(zoneCheck{command: "attach", exclusive: true, force: update}) || !z.verify("attach") {
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) Reply {
		if !force && z.brand.attach != nil {
			h := z.hook()
			if code := z.took(h, z.brand.attach(h, pass)); code != hookOK {
				if code == hookUsage {
					z.printSubUsage("attach")
				}
				return z.reply(1)
			}
		}
		zonepath := z.zone.Config.Zonepath
		if !z.verifyZonepath(zonepath, "attach") {
			z.errf("could not verify zonepath %s because of the above errors.", zonepath)
			return z.reply(1)
		}
		if force {
			_ = z.tx.Files.Rename(zonepath+"/SUNWdetached.xml", zonepath+"/SUNWattached.xml") // it need not be there
		} else {
			_ = z.tx.Files.Remove(zonepath + "/SUNWdetached.xml")
			_ = z.tx.Files.Remove(zonepath + "/SUNWattached.xml")
		}
		if !z.setState(world.ZoneInstalled) {
			return z.reply(1)
		}
		return z.reply(0)
	})
}

// move gives a zone another zonepath: its file system another mountpoint, or
// the directory another name.
func (z *zoneadm) move(args []string) Reply {
	options, operands := getopt(args, "?", nil)
	if r := z.asked("move", args, options); r != nil {
		return *r
	}
	if len(operands) != 1 {
		return z.subUsage("move")
	}
	to := operands[0]
	if !z.sane(zoneCheck{command: "move", exclusive: true}) || !z.verify("move") || !z.verifyZonepath(to, "move") {
		return z.reply(1)
	}
	if entries, err := z.tx.Files.ReadDir(to); err != nil || len(entries) > 0 {
		z.errf("could not move zone to %s: directory not empty", to)
		return z.reply(1)
	}
	return z.locked(z.reply(0), func(z *zoneadm) Reply {
		if !z.moveTo(path.Clean(to)) {
			return z.reply(1)
		}
		z.zone.Config.Zonepath = path.Clean(to)
		if err := z.tx.SaveZone(z.zone); err != nil {
			z.errf("zoneadm: zonecfg save failed: Problem saving file")
			return z.reply(1)
		}
		return z.reply(0)
	})
}

func (z *zoneadm) moveTo(to string) bool {
	from := z.zone.Config.Zonepath
	root := z.tx.MountedAt(from + "/root")
	if mounts := z.mountsBelow(from + "/root"); len(mounts) > 0 {
		z.say("These file systems are mounted on subdirectories of %s.", from)
		z.listMounts(mounts)
		return false
	}
	if root != nil {
		if err := z.tx.Unmount(root.Name, false); err != nil {
			z.say("unable to unmount zone root %s/root: %s", from, err)
			return false
		}
	}
	moved := false
	if d := z.tx.MountedAt(from); d != nil {
		moved = z.tx.SetProperty(d.Name, "mountpoint", to) == nil
		_ = z.tx.Files.Remove(from)
	} else if z.tx.Files.Remove(to) == nil {
		moved = z.tx.Files.Rename(from, to) == nil
	}
	if !moved {
		z.errf("zoneadm: could not move zone: Device busy")
		to = from
	}
	if root != nil {
		if err := z.tx.MountAt(root.Name, to+"/root"); err != nil {
			z.say("unable to mount zone root %s/root: %s", to, err)
			return false
		}
	}
	return moved
}

// sysboot is what svc:/system/zones calls for zones that it does not boot.
func (z *zoneadm) sysboot([]string) Reply {
	if !z.sane(zoneCheck{command: "sysboot", exclusive: true}) {
		return z.reply(1)
	}
	if z.brand.sysboot == nil {
		return z.reply(0)
	}
	h := z.hook()
	if z.took(h, z.brand.sysboot(h)) != hookOK {
		return z.reply(40) // Z_BRAND_ERROR
	}
	return z.reply(0)
}
