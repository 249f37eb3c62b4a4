package probe

// left are the queries that no recording has, and why.
func left() map[string]string {
	return map[string]string{
		"vnic: dladm show-linkprop -c -p zone -o value *":                                  "it opens the link, and a zone that boots meanwhile does not get it",
		"vnic: dladm show-linkprop -c -p mtu -o value *":                                   "as above",
		"vnic: dladm show-linkprop -c -p protection,allowed-ips,maxbw -o property,value *": "it opens the link, and is for one that a zone has",
		"illumos/disk: fstyp -a *":                                                         "it opens a disk or a file",
		"illumos/disk: fstyp -a /dev/rdsk/*":                                               "it opens a disk",
		"illumos/smf: svcprop -w -p restarter/state *":                                     "it waits until something happens",
		"illumos/smf: svcprop -w -z * -p restarter/state *":                                "as above",
		"illumos/opte: opteadm --version":                                                  "most sleds have no opteadm; it is asked before a port is made",
		"illumos/opte: opteadm list-ports":                                                 "it aligns its columns by addresses, which a recording replaces",
		"illumos/opte: opteadm dump-layer -p * *":                                          "what a customer's firewall lets through",
		"illumos/opte: opteadm dump-v2p":                                                   "where customers' addresses are, on all sleds of a rack",
		"zfs: zfs send":                                                                    "it prints what volumes hold",
		"zfs: zfs send *":                                                                  "it prints what volumes hold",
		"zfs: zfs send -i * *":                                                             "it prints what volumes hold",
		"zfs: zfs send -t *":                                                               "it prints what volumes hold",
		"illumos/key: * … latest":                                                          "an operator's program",
		"illumos/key: * … *":                                                               "an operator's program, that prints a secret",
		"zfs: zpool import -d *":                                                           "a directory of the settings; it prints what zpool import prints",
		"illumos/system: uname -n":                                                         "it prints the host's name, which a recording hides",
		"propolis/packaging: ctrun -l child -o noorphan * --version":                       "it runs the server, whose file a setting names",
		"propolis/packaging: ldd *":                                                        "as above",
		"illumos/smf: svccfg validate *":                                                   "the manifests of a package, where it is installed",
		"engine/bundle: * *":                                                               "texts for people, that no parser reads: arguments of processes are among them",
	}
}

// asked are the questions that no driver sends, and why.
func asked() map[string]string {
	return map[string]string{
		"zonecfg -z ZONE export": "drivers read the file below /etc/zones, from which it is made",
		"zonecfg -z ZONE info":   "as above",
	}
}
