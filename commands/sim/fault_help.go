package sim

// faultHelp lists the faults of the simulated sled, by what they hit.
const faultHelp = `Arm a fault of the simulated sled. Most faults hit the next command that contains the words in --match in their order; a word may be a
pattern, e.g. propolis_*, whose * matches no slash. Faults of services match the zone and the service.

Faults of a command:

    fail             ends with --exit and --stderr, and does nothing
    answer           prints --stderr on its standard output, ends with --exit (give 0 for success), and does nothing
    busy             fails as if the object were in use
    half             does its first part, then fails as with fail
    hang             stops until the fault is cleared, or for --delay
    missed           misses the event that it waits for
    killed           is killed halfway: an installation leaves its zone incomplete; a clone with --stderr mounted dies while its hook works
    kill             its caller is killed before the command does anything
    kill-during      its caller is killed, and the command continues
    kill-after       its caller is killed when the command has ended
    lose-disk        the disk named by --stderr is missing from then on
    fail-disk        the disk named by --stderr has I/O errors from then on

Faults of the system, as its commands show it:

    old-kernel       the kernel is too old (--match uname, or --match "ioctl /dev/viona" or /dev/vmmctl)
    no-device        a device is missing when it is asked for its version (--match "ioctl /dev/viona" or /dev/vmmctl)
    few-privileges   a process has only the basic privileges, or those of --stderr (--match ppriv); is no longer root's (--match pcred)
    low-swap         little virtual memory is left (--match swap)
    in-zone          a process is in the zone named by --stderr (--match zonename)

Faults of zones:

    hook             the brand's hook fails with --exit: 253, 254 or 255
    slow-clone       the clone's hook works --delay longer in the mounted zone
    boot             the zone gets ready, and then does not boot
    down             a halt stops halfway, and leaves the zone down
    shutdown-timeout the zone does not shut down by itself
    list-race        a listing loses the zone named by --stderr

Faults of links and addresses:

    mtu-ignored      the mtu of create-vnic is not applied
    slow-dad         an address stays tentative for --delay
    no-lease         no DHCP server answers
    slow-link        show-linkprop holds a link --delay longer (--match "show-linkprop LINK")

Faults of services (--match "ZONE FMRI"):

    maintenance      its start method fails for good
    slow-door        the zone's repository answers --delay later
    slow-milestone   the zone's services start --delay later
    slow-method      the service is in transition for --delay longer

Faults of Propolis (--match "propolis ZONE METHOD PATH…", the path in words, e.g. "propolis PUT instance state"):

    fail             the request fails with 500; --stderr is the reason in the service's log
    crash            the request crashes the server, and its VM with it
    drop             the connection breaks, also an open console
    slow-create      creating the VM takes --delay longer
    slow-stop        stopping the VM takes --delay longer (--match "propolis stop")
    old-server       the server is an older one: the newest version of its API is --stderr, or 5 (--times 0)

Faults of a migration, on either side (--match "propolis ZONE migrate STAGE", e.g. RamPush, Pause, Device, Finish):

    slow-migrate     the stage takes --delay longer
    fail, drop       the migration fails in the stage

Faults of NAPI (--match "napi METHOD PATH", the path without its query; see sim napi):

    napi-down        closes the connection without an answer
    napi-restart     the same, while it starts for --delay; then it has the era --stderr
    napi-era         has the era --stderr from then on
    napi-fail        answers with the status --exit and the message --stderr
    napi-empty       answers 200, with nothing
    napi-html        answers 200, with a proxy's page
    napi-truncated   leaves out the second half of the answer
    napi-object      answers with an object instead of a list
    napi-foreign     also lists a record of another sled
    napi-twice       lists one record twice
    napi-ownerless   lists a record without an owner
    napi-touch       another client changes the record after it is read
    napi-race        another client changes the record between check and write

Faults of the control plane (--match "nexus METHOD PATH", e.g. "nexus POST /vmms/*/doorbell"; see sim nexus):

    nexus-down       closes the connection without an answer
    nexus-fail       answers with the status --exit and the message --stderr
    nexus-html       another program answers: 200, with a page
    nexus-talk       the answer is not HTTP
    nexus-slow       answers --delay later
    nexus-lost       answers as if it had accepted, and does nothing

Faults of the web server (--match "web METHOD PATH"; see sim web):

    web-fail         answers with the status --exit
    web-html         answers 200, with a page
    web-cut          breaks off after half of what it was to send
    web-stall        sends half of it, and then nothing`

const faultExamples = `  sledctl sim fault add fail --match "zoneadm clone" --times 1 --stderr "cannot create" --exit 1
  sledctl sim fault add busy --match "dladm delete-vnic" --times 3
  sledctl sim fault add lose-disk --match "zfs create" --stderr c11t0d0
  sledctl sim fault add crash --match "propolis PUT instance state"`
