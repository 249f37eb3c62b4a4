package spec

// place is where a device sits; backends sit nowhere.
func place(c Component) (PCIPath, bool) {
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
	for _, key := range c.spec.Components.Keys() {
		b, ok := c.spec.Components[key].(PCIBridge)
		if !ok {
			continue
		}
		if other := buses[b.Downstream]; other != "" {
			c.add(key, "bus %d is that of %s", b.Downstream, other)
		}
		buses[b.Downstream] = key
	}
	taken := map[PCIPath]string{}
	for _, key := range c.spec.Components.Keys() {
		at, ok := place(c.spec.Components[key])
		if !ok {
			continue
		}
		switch own := builtIn(at); {
		case at.Device > 31 || at.Function > 7:
			c.add(key, "there is no place %s: devices end at 31, functions at 7", at)
		case own != "":
			c.add(key, "at %s is %s", at, own)
		case buses[at.Bus] == "":
			c.add(key, "no bridge makes bus %d", at.Bus)
		case taken[at] != "":
			c.add(key, "at %s is %s", at, taken[at])
		}
		taken[at] = key
	}
}
