# The part of lib/svc/share/smf_include.sh (illumos-gate,
# usr/src/cmd/svc/shell/smf_include.sh) that methods on the simulated sled use:
# the exit codes of smf_method(7).

SMF_EXIT_OK=0
SMF_EXIT_NODAEMON=94
SMF_EXIT_ERR_FATAL=95
SMF_EXIT_ERR_CONFIG=96
SMF_EXIT_MON_DEGRADE=97
SMF_EXIT_MON_OFFLINE=98
SMF_EXIT_ERR_NOSMF=99
SMF_EXIT_ERR_PERM=100
