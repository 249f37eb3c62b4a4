package privilege

// Program is what a program of the host needs when it changes something.
type Program struct {
	Need    Need
	Profile string // of exec_attr(5) that gives a user the same; empty: none
	Source  string // that says so
}

// Programs are the programs that sledctl runs to change something. One that is not here
// needs everything.
//
// Guess links-need-dl-config: dladm changes VNICs, etherstubs and properties of links with
// sys_dl_config and net_rawaccess alone, as the profile Network Link Security has it; of a link
// that goes into a zone zoneadm takes care.
// Check: `ppriv -e -s EIP=basic,sys_dl_config,net_rawaccess dladm create-vnic -t -l net0 vnic_try0`, as root
//
// Guess addresses-need-ip-config: ipadm and route change addresses and routes with sys_ip_config and
// net_rawaccess, for root, who has the authorization solaris.network.interface.config.
// Check: `ppriv -e -s EIP=basic,sys_ip_config,net_rawaccess ipadm show-addr`, and create-addr with it
//
// Guess datasets-need-sys-mount: zfs needs sys_mount for every change that sledctl makes, and file_chown
// and file_owner for the directories that it mounts on.
// Check: `ppriv -e -s EIP=basic,sys_mount,file_chown,file_owner zfs create rpool/try`, as root
//
// Guess pools-need-sys-config: zpool needs sys_config, sys_mount and sys_devices.
// Check: `ppriv -e -s EIP=basic,sys_config,sys_mount,sys_devices zpool create try DISK`, as root
//
// Guess services-need-all: svcadm and svccfg with -z need every privilege, for the zone's svc.configd
// takes root's word only with them.
// Check: `ppriv -e -s EIP=basic svcadm -z ZONE disable -t SERVICE`, as root
//
// Guess reservoir-needs-sys-config: rsrvrctl sets the reservoir with sys_config, besides the file
// /dev/vmmctl, which is root's.
// Check: `ppriv -e -s EIP=basic,sys_config rsrvrctl -s 1024`, as root
func Programs() map[string]Program {
	need := func(names ...string) Need { return Need{Files: WriteFiles, Privileges: names} }
	all := need(All)
	return map[string]Program{
		"zoneadm":  {all, "Zone Management", "zoneadm.c, sanity_check: priv_isfullset"},
		"zlogin":   {all, "Zone Management", "zlogin.c: all privs required"},
		"zonecfg":  {all, "Zone Security", "exec_attr: uid=0"},
		"dladm":    {need("net_rawaccess", "sys_dl_config"), "Network Link Security", "exec_attr: privs=sys_dl_config,net_rawaccess,proc_audit"},
		"opteadm":  {need("sys_dl_config"), "", "xde/src/secpolicy.rs: secpolicy_dl_config"},
		"ipadm":    {need("net_rawaccess", "sys_ip_config"), "Network IP Management", "guess addresses-need-ip-config"},
		"route":    {need("net_rawaccess", "sys_ip_config"), "Network Management", "exec_attr: privs=sys_ip_config"},
		"zfs":      {need("file_chown", "file_owner", "sys_mount"), "ZFS File System Management", "guess datasets-need-sys-mount"},
		"zpool":    {need("sys_config", "sys_devices", "sys_mount"), "ZFS Storage Management", "guess pools-need-sys-config"},
		"mount":    {need("sys_mount"), "File System Management", "exec_attr: privs=sys_mount"},
		"umount":   {need("sys_mount"), "File System Management", "exec_attr: privs=sys_mount"},
		"svcadm":   {all, "", "guess services-need-all"},
		"svccfg":   {all, "", "guess services-need-all"},
		"rsrvrctl": {need("sys_config"), "", "guess reservoir-needs-sys-config"},
		"chmod":    {need("file_owner"), "Object Access Management", "exec_attr: privs=file_owner"},
	}
}

// Of is what some programs need together, when they change something.
func Of(names ...string) Need {
	known, all := Programs(), Need{}
	for _, name := range names {
		p, ok := known[name]
		if !ok {
			p.Need = Need{Files: WriteFiles, Privileges: []string{All}}
		}
		all = all.And(p.Need)
	}
	return all
}
