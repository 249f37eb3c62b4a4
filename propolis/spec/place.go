package spec

// Place is where a device sits; backends sit nowhere.
func Place(c Component) (PCIPath, bool) {
	switch p := c.(type) {
	case NVMeDisk:
		return p.PCI, true
	case VirtioDisk:
		return p.PCI, true
	case VirtioNIC:
		return p.PCI, true
	case VirtioSocket:
		return p.PCI, true
	case PCIBridge:
		return p.PCI, true
	case SoftNPUPCIPort:
		return p.PCI, true
	case SoftNPUP9:
		return p.PCI, true
	case P9FS:
		return p.PCI, true
	}
	return PCIPath{}, false
}

// builtIn names the devices that every machine has. The server does not look
// before it puts another there, and dies.
func builtIn(p PCIPath) string {
	switch p {
	case PCIPath{0, 0, 0}:
		return "the host bridge"
	case PCIPath{0, 1, 0}:
		return "the LPC bridge"
	case PCIPath{0, 1, 3}:
		return "power management"
	}
	return ""
}

// places wants each device on a bus that is there, in a place of its own.
func (c *checker) places() {
	buses := map[uint8]string{0: "the host bridge"}
	for _, key := range c.keys() {
		b, ok := c.spec.Components[key].(PCIBridge)
		if !ok {
			continue
		}
		if other := buses[b.Downstream]; other != "" {
			c.add(bodyPath(key, "downstream_bus"), "bus %d is that of %s", b.Downstream, other)
		}
		buses[b.Downstream] = key
	}
	reached := c.reached()
	taken := map[PCIPath]string{}
	for _, key := range c.keys() {
		at, ok := Place(c.spec.Components[key])
		if !ok {
			continue
		}
		where := bodyPath(key, "pci_path")
		switch own := builtIn(at); {
		case at.Device > 31 || at.Function > 7:
			c.add(where, "there is no place %s: devices end at 31, functions at 7", at)
		case own != "":
			c.add(where, "at %s is %s", at, own)
		case buses[at.Bus] == "":
			c.lacks(where, "no bridge makes bus %d", at.Bus)
		case !reached[at.Bus]:
			c.lacks(where, "bus %d does not hang from bus 0", at.Bus)
		case taken[at] != "":
			c.add(where, "at %s is %s", at, taken[at])
		}
		if taken[at] == "" {
			taken[at] = key
		}
	}
}

// reached are the buses that hang from the first, over however many bridges.
//
// Guess no-bridge-on-its-own-bus: a server cannot do with a PCI bridge that lies on the bus that it
// makes, or behind it.
// Check: such a spec, by `propolis-cli new --spec`
func (c *checker) reached() map[uint8]bool {
	reached := map[uint8]bool{0: true}
	for more := true; more; {
		more = false
		for _, part := range c.spec.Components {
			if b, ok := part.(PCIBridge); ok && reached[b.PCI.Bus] && !reached[b.Downstream] {
				reached[b.Downstream], more = true, true
			}
		}
	}
	return reached
}
